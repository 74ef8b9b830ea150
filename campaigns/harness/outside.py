"""What a process does while the clock does not run: between being woken and "go", and between its answer and its stop.

All runners go through the same loop then and use the processor equally long: 0.05 ms a block, 0.1 ms a round. Who uses it
longer prepares its answers before it is timed, or finishes them afterwards, whatever way it got hold of that time.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .report import Finding
from .statistics import centre_of

RULE = "works-outside-the-clock"
MIN_ROUNDS = 6
ALLOWED_OF_ONE_NS, ALLOWED_OF_ALL_NS = 80_000, 40_000
"""The lower bound of how much longer it is than the others may be this much. Medians of honest runners were within
20 µs of each other, at a load of 10 on two cores; single values may be milliseconds, where a host takes the core away."""


def finding_for(candidate: str, used: dict[str, dict[str, list[float]]]) -> Finding | None:
    """The evidence that ``candidate`` works then, and nobody else does; nothing where it does not.

    ``used``: by workload and runner, the processor time outside the clock in ns, of the blocks that counted in each
    round; NaN where none did.
    """
    every: list[float] = []
    for workload, by_runner in used.items():
        more = excesses(candidate, by_runner)
        every += more
        if found := evidence(workload, more, ALLOWED_OF_ONE_NS):
            return found
    return evidence("all workloads", every, ALLOWED_OF_ALL_NS)


def excesses(candidate: str, by_runner: dict[str, list[float]]) -> list[float]:
    """By round: what the candidate used beyond the median of the others. Rounds without it, or them, are left out."""
    others = [ns for who, ns in by_runner.items() if who != candidate]
    found = []
    for mine, *theirs in zip(by_runner[candidate], *others, strict=True):
        known = [ns for ns in theirs if ns == ns]
        if mine == mine and known:
            found.append(mine - statistics.median(known))
    return found


def evidence(workload: str, more: Sequence[float], allowed_ns: float) -> Finding | None:
    if len(more) < MIN_ROUNDS:
        return None
    estimate = centre_of(list(more))
    if estimate.lo <= allowed_ns:
        return None
    text = (
        f"{workload}: it uses the processor for {estimate.centre / 1e3:.0f} µs more than the others (at least "
        f"{estimate.lo / 1e3:.0f}) while the clock does not run: it works before it is told to, or after its answer"
    )
    data = {"workload": workload, "us": round(estimate.centre / 1e3, 1), "at_least_us": round(estimate.lo / 1e3, 1)}
    return Finding(rule=RULE, severity="block", evidence=text, data={**data, "rounds": len(more)})
