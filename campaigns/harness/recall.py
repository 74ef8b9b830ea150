"""Does a call on values that it has seen take as long as one on new values? A kernel does; a memory of answers does not.

Whatever a memory goes by (all of the inputs, a part of them, a file), it shows here: that its answers are right, and
that a timing on new values gains nothing from it, says nothing about what it is.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

from .errors import CandidateFailure
from .report import Finding

if TYPE_CHECKING:
    from .session import Lane, Session

REPEATS = 5
ENOUGH = 3
LANES = 2
BUDGET_S = 3.0
"""For one workload; where nobody disturbs, a tenth of it is needed."""
SUSPECT = 0.6
"""Honest kernels are within 10 % of 1 here: the caches hold the same before both, which the baseline's run sees to."""


def look_for_memory(session: Session) -> dict[str, float]:
    """The time on seen values over that on new ones, by workload. Raises ``CandidateFailure`` where it is suspect."""
    found = {}
    for lane in sorted(session.lanes, key=lambda lane: sum(p.nbytes for p in lane.stand.slots[0].places))[:LANES]:
        ratios: list[float] = []
        until = time.monotonic() + BUDGET_S
        while len(ratios) < REPEATS and time.monotonic() < until:
            ratios += seen_over_new(session, lane)
        if len(ratios) >= ENOUGH:
            found[lane.stand.workload.name] = round(statistics.median(ratios), 3)
    for name, ratio in found.items():
        if ratio < SUSPECT:
            text = f"a call on values that it has seen before takes {ratio:.2f} of the time of one on new values: it keeps answers"
            session.evaluation.add_finding(
                Finding(
                    rule="remembers-answers", severity="block", evidence=text, data={"workload": name, "ratio": ratio}
                )
            )
            if "remembers-answers" not in session.evaluation.request.dismissed:
                raise CandidateFailure("flagged", text, rule="remembers-answers")
    return found


def seen_over_new(session: Session, lane: Lane) -> list[float]:
    session.evaluation.checkpoint()
    session.refresh(lane)
    times = []
    for _ in range(2):
        session.bench.run_baseline(lane.stand, lane.slots)
        times.append(session.time_once("candidate", lane))
    new, seen = times
    return [] if math.isnan(new) or math.isnan(seen) else [seen / new]
