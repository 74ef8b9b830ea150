"""Beside two captures of the harness: what its verdict measured of the same kernels, without a profiler."""

from __future__ import annotations

from dataclasses import dataclass

from campaigns.harness.capturing import CANDIDATE
from campaigns.models import Attempt, AttemptProfile, Measurement
from profiling.models import Profile

from .evidence import half
from .problem import baseline_title
from .standing import Standing, standing_of


@dataclass(frozen=True)
class Judged:
    """One side of a comparison that is the capture of an attempt's candidate; ``row`` is the captured workload's."""

    letter: str
    attempt: Attempt
    baseline: str
    workload: str
    row: Measurement | None

    @property
    def standing(self) -> Standing:
        return standing_of(self.attempt)

    @property
    def half_band(self) -> float | None:
        return half(self.row.speedup_lo, self.row.speedup_hi) if self.row else None


def verdicts_of(a: Profile, b: Profile) -> list[Judged]:
    """The attempts whose candidates were captured in ``a`` and ``b``; none for captures that people uploaded."""
    found = [judged(letter, profile) for letter, profile in (("A", a), ("B", b))]
    return [verdict for verdict in found if verdict]


def judged(letter: str, profile: Profile) -> Judged | None:
    taken = AttemptProfile.objects.filter(profile=profile, role=CANDIDATE).select_related("attempt__campaign").first()
    if taken is None:
        return None
    attempt = taken.attempt
    row = attempt.measurements.filter(workload=taken.workload).first()
    return Judged(letter, attempt, baseline_title(attempt.campaign), taken.workload, row)


def captures_title(verdicts: list[Judged]) -> str:
    """What stands above the page: which kernels are held together, and no figure of theirs."""
    names = " and ".join(f"attempt {verdict.attempt.number}" for verdict in verdicts)
    return f"Captures of {names}" if len(verdicts) > 1 else f"Captures of {names} and what it is held against"
