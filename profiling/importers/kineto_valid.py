"""Which times of a trace cannot be true: told apart from a trace that simply begins at zero."""

from __future__ import annotations

import numpy as np

from profiling.events import Column, Table

MOST_AT_ZERO = 3
"""Nested ranges of one thread may begin at the same zero; a stream does not begin several kernels at once."""
FAR_NS = 1_000_000_000


def keep_valid(
    table: Table, lanes: tuple[str, ...], nested: bool, origin: Column, what: str, notes: list[str]
) -> Table:
    """Drop rows whose times say "not recorded", or that end before they start, and note how many.

    :param lanes: columns that tell lanes apart.
    :param nested: whether several rows of a lane may begin at one time.
    :param origin: starts of all rows of the trace, of any kind.
    """
    start, end = table["start"], table["end"]
    negative = end < start
    zero = start == 0
    if zero.any() and zero_is_a_time(origin):
        zero &= crowded_at_zero(table, lanes, zero, MOST_AT_ZERO if nested else 1)
    for count, why in (
        (int((negative & ~zero).sum()), "end before they start"),
        (int(zero.sum()), "have no timestamp"),
    ):
        if count:
            notes.append(f"{count:,} of {len(start):,} {what} {why}: left out")
    keep = ~(negative | zero)
    return table if keep.all() else {name: column[keep] for name, column in table.items()}


def zero_is_a_time(starts: Column) -> bool:
    """Whether the other events lie near zero: no farther from it than they are spread, or than a second."""
    others = starts[starts != 0]
    if not len(others):
        return True
    low, high = int(others.min()), int(others.max())
    return low <= max(high - low, FAR_NS)


def crowded_at_zero(table: Table, lanes: tuple[str, ...], zero: Column, most: int) -> Column:
    """Rows that begin at zero together with more than ``most`` of their own lane."""
    keys = np.stack([table[name].astype(np.int64) for name in lanes])
    _, lane = np.unique(keys, axis=1, return_inverse=True)
    lane = lane.reshape(-1)
    numbers = np.bincount(lane[zero], minlength=int(lane.max(initial=0)) + 1)
    return numbers[lane] > most
