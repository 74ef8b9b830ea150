"""Timestamps that cannot be true are counted and left out, never stretched into spans or latencies."""

from __future__ import annotations

import numpy as np

from profiling.events import Capture, Column, Counter, Table

EPOCH_LIKE_NS = 10**15
"""Times beyond 11 days are an epoch or a boot clock: they are shown from the first event on instead."""


def keep_valid(table: Table, lane: Column, what: str, notes: list[str]) -> Table:
    """Drop rows whose times say "not recorded" and note how many.

    CUPTI writes 0 for a time that it could not collect. A lone row that starts at 0 and ends before the next one of
    its lane may be real and stays.
    """
    start, end = table["start"], table["end"]
    negative = end < start
    zero = (start == 0) & ~lone_at_zero(start, end, lane)
    for count, why in (
        (int((negative & ~zero).sum()), "end before they start"),
        (int(zero.sum()), "have no timestamp"),
    ):
        if count:
            notes.append(f"{count:,} of {len(start):,} {what} {why}: left out")
    keep = ~(negative | zero)
    return table if keep.all() else {name: column[keep] for name, column in table.items()}


def lone_at_zero(start: Column, end: Column, lane: Column) -> Column:
    """Rows that start at 0 alone on their lane, last longer than 0, and end before the lane's next start."""
    result = np.zeros(len(start), bool)
    at_zero = np.flatnonzero((start == 0) & (end > 0))
    if len(at_zero) > 10_000:
        return result
    for index in at_zero:
        others = start[lane == lane[index]]
        later = others[others > 0]
        result[index] = (others == 0).sum() == 1 and (not len(later) or end[index] <= later.min())
    return result


def shift_to_origin(capture: Capture) -> None:
    """Let an epoch's or a boot clock's times begin at 0, in all tables and counters of the capture."""
    tables = [capture.gpu, capture.api, capture.nvtx, capture.sync, capture.os]
    shift = origin_ns(tables)
    if not shift:
        return
    for table in tables:
        table["start"] -= shift
        table["end"] -= shift
    capture.counters = [Counter(c.label, c.unit, c.device, c.time - shift, c.value) for c in capture.counters]


def origin_ns(tables: list[Table]) -> int:
    """What to subtract so that times are small: 0 while they already are (then they equal the profiler's own)."""
    starts = [int(t["start"].min()) for t in tables if len(t["start"])]
    ends = [int(t["end"].max()) for t in tables if len(t["start"])]
    if not starts or (max(ends) < EPOCH_LIKE_NS and min(starts) > -EPOCH_LIKE_NS):
        return 0
    return min(starts)
