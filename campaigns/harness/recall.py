"""Does a call on values that it has seen take as long as one on new values? A kernel does; a memory of answers does not.

Whatever a memory goes by (all of the inputs, a row of them, a file), it shows here: that its answers are right, and
that a timing on new values gains nothing from it, says nothing about what it is. Where the rounds of a session refreshed
their inputs instead of drawing them anew, a refreshed draw is one that is seen in parts, and asked about as well.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

from .bench import draws_cheaply
from .errors import CandidateFailure
from .report import Finding

if TYPE_CHECKING:
    from .lane import Lane
    from .session import Session

REPEATS, ENOUGH = 5, 3
LANES = 2
"""At least so many, those with the greatest gains first; the others as long as there is time."""
BUDGET_S, LANE_BUDGET_S = 4.0, 3.0
"""Of all; of one workload, where a tenth of it is needed if nobody disturbs."""
SUSPECT, NOTABLE = 0.6, 0.85
"""Honest kernels are within 10 % of 1 here: the caches hold the same before both, which the baseline's run sees to."""
SEEN, REFRESHED = "values that it has seen before", "refreshed values, which it has seen in parts,"


def look_for_memory(session: Session) -> dict[str, float]:
    """The least time on seen values over that on new ones, by workload. Raises ``CandidateFailure`` where it is suspect."""
    found: dict[str, float] = {}
    until = time.monotonic() + BUDGET_S
    for index, lane in enumerate(sorted(session.lanes, key=lambda lane: gain(session, lane), reverse=True)):
        if index >= LANES and time.monotonic() > until:
            break
        ratios = measured(session, lane)
        for what, values in ratios.items():
            if len(values) >= ENOUGH:
                name = lane.stand.workload.name
                ratio = statistics.median(values)
                found[name] = round(min(ratio, found.get(name, ratio)), 3)
                judge(session, name, what, ratio)
    return found


def gain(session: Session, lane: Lane) -> float:
    """How much faster the candidate is than what it is compared with, as a logarithm."""
    return statistics.median(lane.log_ratios(session.incumbents or ["baseline"], "candidate") or [0.0])


def measured(session: Session, lane: Lane) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {SEEN: [], REFRESHED: []}
    until = time.monotonic() + LANE_BUDGET_S
    for _ in range(REPEATS):
        clean = [ratio > NOTABLE for values in found.values() for ratio in values]
        if time.monotonic() > until or (len(found[SEEN]) >= ENOUGH and all(clean)):
            break
        for what, ratio in over_new(session, lane).items():
            found[what].append(ratio)
    return found


def over_new(session: Session, lane: Lane) -> dict[str, float]:
    """The time on seen values, and on refreshed ones where the rounds had such, over that on new ones. Disturbed ones
    are left out."""
    session.evaluation.checkpoint()
    session.bench.draw(lane.stand, lane.slots)
    new, times = timed(session, lane), {SEEN: timed(session, lane)}
    if not draws_cheaply(lane.slots):
        session.bench.refresh(lane.stand, lane.slots)
        times[REFRESHED] = timed(session, lane)
    return {what: ns / new for what, ns in times.items() if not math.isnan(ns / new)}


def timed(session: Session, lane: Lane) -> float:
    session.bench.run_baseline(lane.stand, lane.slots)
    return session.time_once("candidate", lane)


def judge(session: Session, workload: str, what: str, ratio: float) -> None:
    if ratio >= NOTABLE:
        return
    blocks = ratio < SUSPECT
    text = f"a call on {what} takes {ratio:.2f} of the time of one on new values: it keeps answers"
    data = {"workload": workload, "ratio": round(ratio, 3)}
    session.evaluation.add_finding(
        Finding(rule="remembers-answers", severity="block" if blocks else "warning", evidence=text, data=data)
    )
    if blocks and "remembers-answers" not in session.evaluation.request.dismissed:
        raise CandidateFailure("flagged", text, rule="remembers-answers")
