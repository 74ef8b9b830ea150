"""Where along the swept axis a candidate wins, when it does not win everywhere. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .gate import clears
from .report import Ratio, WorkloadResult
from .statistics import Estimate, combine

CLOSE = 1.15
"""Values nearer to each other than this are not told apart by a further measurement."""


@dataclass(frozen=True)
class Run:
    """Neighbouring values of the axis at which every workload wins; ``below`` and ``above`` do not win, or are None."""

    values: list[int]
    below: int | None
    above: int | None
    gain: float


def timed(rows: Sequence[WorkloadResult], axis: str) -> list[WorkloadResult]:
    return [row for row in rows if row.over_incumbent is not None and axis in row.axes]


def wins(row: WorkloadResult, floor: float) -> bool:
    """By its own interval against its own noise."""
    return clears(row.over_incumbent, row.noise, floor=floor)


def find(rows: Sequence[WorkloadResult], axis: str, floor: float) -> Run | None:
    """The run of values with the greatest gain; None where it wins nowhere, or at every value."""
    by_value: dict[int, list[WorkloadResult]] = {}
    for row in timed(rows, axis):
        by_value.setdefault(row.axes[axis], []).append(row)
    values = sorted(by_value)
    good = [all(wins(row, floor) for row in by_value[value]) for value in values]
    if not any(good) or all(good):
        return None
    best: Run | None = None
    first = 0
    while first < len(values):
        last = first
        while good[first] and last + 1 < len(values) and good[last + 1]:
            last += 1
        if good[first]:
            gain = sum(
                math.log(r.over_incumbent.value)
                for v in values[first : last + 1]
                for r in by_value[v]
                if r.over_incumbent
            )
            below, above = (
                (values[first - 1] if first else None),
                (values[last + 1] if last + 1 < len(values) else None),
            )
            if best is None or gain > best.gain:
                best = Run(values[first : last + 1], below, above, gain)
        first = last + 1
    return best


def between(winning: int, losing: int) -> int | None:
    """The value to try next; None where the two are close enough."""
    if max(winning, losing) / min(winning, losing) < CLOSE:
        return None
    middle = round(math.sqrt(winning * losing))
    return middle if middle not in (winning, losing) else None


def inside(rows: Sequence[WorkloadResult], axis: str, lo: int, hi: int) -> list[WorkloadResult]:
    return [row for row in timed(rows, axis) if lo <= row.axes[axis] <= hi]


def whole(ratios: Sequence[Ratio | None]) -> Ratio | None:
    """The geometric mean of independent ratios, with its interval."""
    found = [Estimate(*map(math.log, (r.value, r.lo, r.hi))) for r in ratios if r is not None]
    return combine(found).ratio() if found else None
