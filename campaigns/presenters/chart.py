"""The campaign's chart as data, and its small twin for lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from campaigns.models import Attempt, Campaign, Decision, Verdict

from .standing import standing_of
from .text import one_line

FAILED = (
    Verdict.INCORRECT,
    Verdict.BUILD_FAILED,
    Verdict.LAUNCH_FAILED,
    Verdict.TIMED_OUT,
    Verdict.OUT_OF_MEMORY,
    Verdict.NO_MEASUREMENT,
)


def chart_points(attempts: Iterable[Attempt]) -> list[dict[str, Any]]:
    """One point an attempt that has a verdict: ``n`` its number, ``kind``, ``s`` the speed-up over the baseline with
    ``lo`` and ``hi`` (null: not measured), ``noise`` the A/A interval of its session, ``word`` and ``title`` for the
    hover. An incorrect one never carries a speed-up, whatever is stored."""
    return [point(attempt) for attempt in attempts if attempt.verdict]


def point(attempt: Attempt) -> dict[str, Any]:
    standing = standing_of(attempt)
    measured = attempt.verdict not in FAILED
    noise = [attempt.noise_lo, attempt.noise_hi] if attempt.noise_lo is not None else None
    return {
        "n": attempt.number,
        "kind": standing.kind,
        "s": attempt.speedup if measured else None,
        "lo": attempt.speedup_lo if measured else None,
        "hi": attempt.speedup_hi if measured else None,
        "noise": noise if measured else None,
        "word": standing.word,
        "title": one_line(attempt.title, 90),
    }


POINT_FIELDS = (
    *("campaign_id", "number", "title", "phase", "verdict", "decision", "ranges"),
    *("speedup", "speedup_lo", "speedup_hi", "noise_lo", "noise_hi"),
)


def campaign_points(campaign: Campaign) -> list[dict[str, Any]]:
    return chart_points(campaign.attempts.exclude(verdict="").only(*POINT_FIELDS).order_by("number"))


def sparklines(campaigns: Iterable[Campaign], width: int = 120, height: int = 28) -> dict[int, dict[str, Any]]:
    """For each campaign the running best speed-up as the ``points`` of an SVG polyline, with the line of 1×.

    One query for all. Kept kernels that a person rejected don't count. It starts at 1× with no attempt, and each
    attempt has a step's width, so that also the first and the only one are seen to rise (or, slower than the baseline,
    to fall).
    """
    ids = [campaign.pk for campaign in campaigns]
    kept = Attempt.objects.filter(campaign__in=ids, verdict=Verdict.KEPT, speedup__isnull=False)
    rows = kept.exclude(decision=Decision.REJECTED).order_by("number").values_list("campaign_id", "number", "speedup")
    steps: dict[int, list[tuple[int, float]]] = {pk: [] for pk in ids}
    for campaign_id, number, speedup in rows:
        best = steps[campaign_id][-1][1] if steps[campaign_id] else 0.0
        if speedup is not None and speedup > best:
            steps[campaign_id].append((number, speedup))
    last = {campaign.pk: max(1, campaign.attempt_seq) for campaign in campaigns}
    return {pk: polyline(found, last[pk], width, height) for pk, found in steps.items() if found}


def polyline(steps: list[tuple[int, float]], last: int, width: int, height: int) -> dict[str, Any]:
    top, low = max(1.0, steps[-1][1]) * 1.05, min(1.0, steps[0][1]) * 0.95
    span = max(last, steps[-1][0])

    def x(number: int) -> float:
        return round((number - 0.5) / span * width, 1)

    def y(value: float) -> float:
        return round(height - (value - low) / (top - low) * height, 1)

    dots, before = [f"0,{y(1.0)}"], 1.0
    for number, value in steps:
        dots += [f"{x(number)},{y(before)}", f"{x(number)},{y(value)}"]
        before = value
    dots.append(f"{width},{y(steps[-1][1])}")
    return {"points": " ".join(dots), "one_y": y(1.0), "width": width, "height": height, "best": steps[-1][1]}
