"""What of a capture is compared: all of it, a stretch of time, or every occurrence of an NVTX range."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from profiling import idle, lanes
from profiling.events import Column
from profiling.trace import Trace

MAX_OCCURRENCES = 5000
STRETCH = re.compile(r"ns:(-?\d+)[-–](-?\d+)")
"""A stretch of time as text, ``ns:20649143-159003103``: a marked region, a selection."""


class NoSuchRange(ValueError):
    """The text names no range of the capture; the message says what there is."""


@dataclass
class Selection:
    """Occurrences of what is compared, each with its own GPU events.

    ``owner`` gives for each row of ``Trace.gpu`` the index of its occurrence, or -1. ``start`` and ``end`` are the
    occurrences' own borders in ns; ``ranges`` index ``Trace.nvtx`` (empty for a stretch of time).
    """

    trace: Trace
    text: str
    start: Column
    end: Column
    owner: Column
    ranges: Column = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def occurrences(self) -> int:
        return len(self.start)

    @cached_property
    def rows(self) -> Column:
        return np.flatnonzero(self.owner >= 0)

    @cached_property
    def kernels(self) -> Column:
        return self.rows[self.trace.is_kernel[self.rows]]

    @cached_property
    def times_ns(self) -> Column:
        """How long each occurrence takes: its range on the host, or from its first to its last GPU event if longer.

        A range that only launches returns before its work is done; one that waits for the host ends after it.
        """
        most = np.iinfo(np.int64).max
        first, last = np.full(self.occurrences, most), np.full(self.occurrences, -most)
        np.minimum.at(first, self.owner[self.rows], self.trace.gpu["start"][self.rows])
        np.maximum.at(last, self.owner[self.rows], self.trace.gpu["end"][self.rows])
        ran = last > first
        span = np.where(ran, np.where(ran, last, 0) - np.where(ran, first, 0), 0)
        return np.maximum(self.end - self.start, span) if len(self.ranges) else self.end - self.start

    @cached_property
    def time_ns(self) -> float:
        return float(np.median(self.times_ns)) if self.occurrences else 0.0

    @cached_property
    def typical(self) -> int:
        """The occurrence that takes the median time, or of an even number the quicker one of the two beside it."""
        return int(np.argsort(self.times_ns, kind="stable")[(self.occurrences - 1) // 2]) if self.occurrences else 0

    def median(self, owner: Column, weights: Column | None = None) -> float:
        """Sums of ``weights`` (or counts) over the events of each occurrence, and of those sums the median."""
        sums = np.bincount(owner, weights, minlength=self.occurrences)
        return float(np.median(sums)) if self.occurrences else 0.0

    @cached_property
    def devices(self) -> int:
        return max(1, len(np.unique(self.trace.gpu["device"][self.rows])))

    @cached_property
    def busy_ns(self) -> float:
        """GPU time (union of intervals, per GPU) of one occurrence: the median of all."""
        gpu, rows = self.trace.gpu, self.rows
        if not len(rows):
            return 0.0
        total = np.zeros(self.occurrences)
        for device in np.unique(gpu["device"][rows]).tolist():
            mine = rows[gpu["device"][rows] == device]
            mine = mine[np.lexsort((gpu["start"][mine], self.owner[mine]))]
            borders = np.flatnonzero(np.append(True, np.diff(self.owner[mine]) != 0))
            for low, high in zip(borders.tolist(), [*borders[1:].tolist(), len(mine)], strict=True):
                part = mine[low:high]
                begin, stop = lanes.union(gpu["start"][part], gpu["end"][part])
                total[self.owner[mine[low]]] += (stop - begin).sum()
        return float(np.median(total)) / self.devices

    @cached_property
    def idle_ns(self) -> dict[str, float]:
        """Idle time by cause (``profiling.idle``) before the events of one occurrence: the median of all, ns per GPU."""
        found = idle.gaps(self.trace)
        owner = self.owner[found.next]
        mine = owner >= 0
        start = np.maximum(found.start[mine], self.start[owner[mine]])
        keep = start < found.end[mine]
        start, end, following = start[keep], found.end[mine][keep], found.next[mine][keep]
        parts = idle.divide(self.trace, start, end, following)
        of = self.owner[following]
        return {cause: self.median(of, ns) / self.devices for cause, ns in parts.items()}

    @property
    def launches(self) -> float:
        """Kernels of one occurrence that were launched one by one: the median of all."""
        return self.median(self.owner[self.kernels], self.trace.launched_alone[self.kernels])

    def names(self, limit: int = 3) -> list[str]:
        """Names of the ranges, each once."""
        seen = dict.fromkeys(self.trace.store.name(int(n)) for n in self.trace.nvtx["name"][self.ranges[:1000]])
        return list(seen)[:limit]


def select(trace: Trace, text: str) -> Selection:
    """The part of ``trace`` that ``text`` names: a range's name or a part of it (several after commas), a stretch
    ``ns:FROM-TO``, or nothing for the whole capture.

    :raises NoSuchRange: where nothing matches.
    """
    text = text.strip()
    if not text:
        return stretch(trace, "", *trace.span)
    if found := STRETCH.fullmatch(text):
        lo, hi = int(found.group(1)), int(found.group(2))
        if not -(1 << 62) < lo < hi < 1 << 62:
            raise NoSuchRange(f"“{text}” is no stretch of time: it has to end after it starts.")
        return stretch(trace, text, lo, hi)
    return by_ranges(trace, text, outermost(trace, matching(trace, text)))


def stretch(trace: Trace, text: str, lo: int, hi: int) -> Selection:
    start = trace.gpu["start"]
    owner = np.where((start >= lo) & (start < hi), 0, -1)
    if not text:
        owner = np.zeros(len(start), np.int64)
    return Selection(trace, text, np.array([lo]), np.array([hi]), owner)


def matching(trace: Trace, text: str) -> Column:
    """Names (ids) that a text means: exactly, else by a part, else by the parts between commas."""
    used = np.unique(trace.nvtx["name"])
    ids = np.intersect1d(trace.store.names_matching(text), used)
    exact = [i for i in ids.tolist() if trace.store.name(i) == text]
    if exact or len(ids) or "," not in text:
        return np.array(exact, np.int64) if exact else ids
    parts = [matching(trace, part) for piece in text.split(",") if (part := piece.strip())]
    return np.unique(np.concatenate([*parts, np.empty(0, np.int64)])).astype(np.int64)


def outermost(trace: Trace, names: Column) -> Column:
    """Ranges with one of the names that do not stand inside another such range."""
    wanted = np.isin(trace.nvtx["name"], names)
    found = np.flatnonzero(wanted)
    inside = np.zeros(len(found), bool)
    above = trace.nvtx["parent"][found].astype(np.int64)
    while (above >= 0).any():
        at = np.maximum(above, 0)
        inside |= (above >= 0) & wanted[at]
        above = np.where(above >= 0, trace.nvtx["parent"][at], -1)
    return found[~inside]


def by_ranges(trace: Trace, text: str, ranges: Column) -> Selection:
    if not len(ranges):
        raise NoSuchRange(f"No range is called “{text[:80]}”. {what_there_is(trace)}")
    linked = owners_by_link(trace, ranges)
    working = np.unique(linked[linked >= 0])
    if len(working):  # a range that launches nothing (an annotation on the GPU's own lane) says nothing twice
        ranges = ranges[working]
    ranges = ranges[np.argsort(trace.nvtx["start"][ranges], kind="stable")][:MAX_OCCURRENCES]
    owner = owners_by_link(trace, ranges) if len(working) else owners_by_time(trace, ranges, np.full(len(ranges), -1))
    if len(working):
        process = process_of(trace, owner, len(ranges))
        owner = np.where(owner >= 0, owner, owners_by_time(trace, ranges, process))
    return Selection(trace, text, trace.nvtx["start"][ranges], trace.nvtx["end"][ranges], owner, ranges)


def owners_by_link(trace: Trace, ranges: Column) -> Column:
    """Per GPU event the place in ``ranges`` of the range in which it was launched, or -1."""
    place = np.full(len(trace.nvtx["start"]), -1, np.int64)
    place[ranges] = np.arange(len(ranges))
    result = np.full(len(trace.gpu["start"]), -1, np.int64)
    rows = np.flatnonzero(trace.gpu["nvtx"] >= 0)
    at = trace.gpu["nvtx"][rows].astype(np.int64)
    while len(rows):
        hit = place[at] >= 0
        result[rows[hit]] = place[at[hit]]
        rows, at = rows[~hit], trace.nvtx["parent"][at[~hit]].astype(np.int64)
        rows, at = rows[at >= 0], at[at >= 0]
    return result


def process_of(trace: Trace, owner: Column, count: int) -> Column:
    """The process of each occurrence: that of its events."""
    result = np.full(count, -1, np.int64)
    rows = np.flatnonzero(owner >= 0)
    result[owner[rows]] = trace.gpu["process"][rows]
    return result


def owners_by_time(trace: Trace, ranges: Column, process: Column) -> Column:
    """Per GPU event the occurrence of its process during which it was launched (from any thread: autograd has its own).

    An event without a launch record counts where it starts. ``process`` -1: of any process.
    """
    gpu, result = trace.gpu, np.full(len(trace.gpu["start"]), -1, np.int64)
    launch = gpu["launch"].astype(np.int64)
    times = gpu["start"].copy()
    if len(trace.api["start"]):
        times = np.where(launch >= 0, trace.api["start"][np.maximum(launch, 0)], times)
    for owner in np.unique(process).tolist():
        mine = np.flatnonzero(process == owner)
        start, end = trace.nvtx["start"][ranges[mine]], trace.nvtx["end"][ranges[mine]]
        place = np.searchsorted(start, times, "right") - 1
        at = np.maximum(place, 0)
        hit = (place >= 0) & (times < end[at]) & ((gpu["process"] == owner) | (owner == -1))
        result[hit] = mine[at[hit]]
    return result


def what_there_is(trace: Trace) -> str:
    families = [name for name, _, _ in outer_families(trace)][:6]
    if not families:
        return "The capture has no NVTX ranges: compare it as a whole, or by a marked region."
    return f"Its outermost ranges: {', '.join(families)}."


def outer_families(trace: Trace) -> list[tuple[str, int, int]]:
    """Outermost ranges with work in them, by name up to digits: (template, how many, ns in all), longest first."""
    nvtx, events = trace.nvtx, trace.nvtx_totals["events"]
    roots = np.flatnonzero((nvtx["parent"] < 0) & nvtx["nested"] & (events > 0))
    used, inverse = np.unique(nvtx["name"][roots], return_inverse=True)
    templates = [re.sub(r"\d+", "#", trace.store.name(int(i))) for i in used]
    length = nvtx["end"][roots] - nvtx["start"][roots]
    counts = np.bincount(inverse, minlength=len(used))
    totals = np.bincount(inverse, length, minlength=len(used))
    found: dict[str, tuple[int, int]] = {}
    for template, number, total in zip(templates, counts.tolist(), totals.tolist(), strict=True):
        before = found.get(template, (0, 0))
        found[template] = (before[0] + number, before[1] + int(total))
    return sorted(((t, *f) for t, f in found.items()), key=lambda family: -family[2])
