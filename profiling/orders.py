"""Sorting and grouping of long columns, by what is known of them: few distinct values, small numbers, nearly in order.

NumPy sorts 16-bit integers by radix, many times quicker than it compares 64-bit ones; times mostly come in order.
"""

from __future__ import annotations

import numpy as np

from profiling.events import Column

SAMPLE = 4096
SMALL = 1 << 16


def codes(column: Column) -> tuple[Column, Column]:
    """The distinct values, ascending, and the place of each element's value among them.

    As ``np.unique(…, return_inverse=True)``, without sorting the column: made for few values in many elements.
    """
    if len(column) and (column == column[0]).all():
        return column[:1], np.zeros(len(column), np.int64)
    values = np.unique(column[:: max(1, len(column) // SAMPLE)])
    while True:
        if not len(values) or len(values) > SAMPLE // 2:
            found, inverse = np.unique(column, return_inverse=True)
            return found, inverse
        place = np.minimum(np.searchsorted(values, column), len(values) - 1)
        missing = values[place] != column
        if not missing.any():
            return values, place
        values = np.union1d(values, column[missing])


def small_codes(column: Column) -> tuple[Column, Column]:
    """``codes`` of a column of small, non-negative numbers (ids of names), by counting."""
    values = np.flatnonzero(np.bincount(column)) if len(column) else np.empty(0, np.int64)
    place = np.zeros(int(values[-1]) + 1 if len(values) else 0, np.int64)
    place[values] = np.arange(len(values))
    return values.astype(column.dtype), place[column]


def by_small(numbers: Column) -> Column:
    """Stable order of non-negative numbers."""
    most = int(numbers.max(initial=0))
    return np.argsort(numbers.astype(np.uint16) if most < SMALL else numbers, kind="stable")


def by_keys(first: Column, *others: Column) -> Column:
    """Stable order by ``first``, then by the others: made for a first key that decides nearly always."""
    order = np.arange(len(first)) if is_ascending(first) else np.argsort(first, kind="stable")
    placed = first[order]
    tied = placed[1:] == placed[:-1]
    if others and tied.any():
        rows = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        order[rows] = order[rows[np.lexsort((*(key[order[rows]] for key in reversed(others)), placed[rows]))]]
    return order


def by_time(start: Column, end: Column) -> Column:
    """Order by start, longer intervals first among equal starts."""
    return by_keys(start, -end)


def is_ascending(column: Column) -> bool:
    return bool(np.all(column[1:] >= column[:-1]))


def by_lane(start: Column, end: Column, keys: list[Column]) -> tuple[Column, Column]:
    """Order by the keys, then by time; and where each lane (one combination of keys) begins in that order."""
    order = by_time(start, end)
    lane = np.zeros(len(start), np.int64)
    for key in keys:
        values, place = codes(key)
        if len(values) > 1:
            lane = codes(lane * len(values) + place)[1] if lane.any() else place
    lane = lane[order]
    order = order[by_small(lane)]
    counts = np.bincount(lane)
    return order, np.cumsum(counts) - counts
