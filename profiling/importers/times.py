"""Timestamps that cannot be true are counted and left out, never stretched into spans or latencies."""

from __future__ import annotations

import numpy as np

from profiling.events import Capture, Column, Counter, Table

APART_NS = 100 * 86_400 * 10**9
"""100 days: no capture is as long, so what lasts longer, or lies farther from the rest of its table, is no time."""
CLOCK_NS = 1 << 62
"""Beyond ±146 years sums and differences of times do not fit into 64 bits."""
EPOCH_LIKE_NS = 10**15
"""Times beyond 11 days are an epoch or a boot clock: they are shown from the first event on instead."""


def keep_valid(table: Table, lane: Column, what: str, notes: list[str]) -> Table:
    """Drop rows whose times say "not recorded", or cannot be of one capture, and note how many.

    CUPTI writes 0 for a time that it could not collect. A lone row that starts at 0 and ends before the next one of
    its lane may be real and stays.
    """
    start, end = table["start"], table["end"]
    negative = end < start
    zero = (start == 0) & ~lone_at_zero(start, end, lane)
    absurd = far_apart(start, end) & ~negative & ~zero
    for count, why in (
        (int((negative & ~zero).sum()), "end before they start"),
        (int(zero.sum()), "have no timestamp"),
        (int(absurd.sum()), "last longer than 100 days, or lie as far from the others"),
    ):
        if count:
            notes.append(f"{count:,} of {len(start):,} {what} {why}: left out")
    keep = ~(negative | zero | absurd)
    return table if keep.all() else {name: column[keep] for name, column in table.items()}


def far_apart(start: Column, end: Column) -> Column:
    """Rows that cannot be of one capture with most of the others (``APART_NS``), or whose times are no clock's."""
    result = np.zeros(len(start), bool)
    if not len(start) or (int(end.max()) - int(start.min()) <= APART_NS and abs(int(start.min())) < CLOCK_NS):
        return result
    begins = start.astype(np.float64)  # differences of such times need not fit into 64 bits
    apart = np.abs(begins - np.median(begins)) > APART_NS
    return apart | (end.astype(np.float64) - begins > APART_NS) | (np.abs(begins) > CLOCK_NS) | (end > CLOCK_NS)


def lone_at_zero(start: Column, end: Column, lane: Column) -> Column:
    """Rows that start at 0 alone on their lane, last longer than 0, and end before the lane's next start."""
    result = np.zeros(len(start), bool)
    zeros = np.flatnonzero(start == 0)
    lanes, first, count = np.unique(lane[zeros], return_index=True, return_counts=True)
    alone = count == 1
    lanes, at = lanes[alone], zeros[first[alone]]
    if not len(at):
        return result
    later = np.flatnonzero(start > 0)
    later = later[np.isin(lane[later], lanes)]
    next_start = np.full(len(lanes), np.iinfo(np.int64).max)
    np.minimum.at(next_start, np.searchsorted(lanes, lane[later]), start[later])
    result[at] = (end[at] > 0) & (end[at] <= next_start)
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
