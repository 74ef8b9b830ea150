"""Kernels launched one by one that a CUDA graph replays elsewhere in the capture, or that repeat and could be one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiling import lanes
from profiling.events import Column, Kind
from profiling.findings.finding import Facts, Finding
from profiling.trace import Trace
from profiling.words import count, duration

MIN_KERNELS = 10
LAUNCH_SHARE = 0.3
"""A graph is worth a sentence where the GPU waits for launches this much of the time."""


@dataclass(frozen=True)
class Match:
    """``kernels`` kernels, the same by name, once replayed and once launched one by one. Times in ns."""

    kernels: int
    replay_ns: float
    replays: int
    eager_start: int
    eager_end: int


def find(facts: Facts) -> list[Finding]:
    trace = facts.trace
    waiting = facts.gaps.total_ns("launch") + facts.gaps.total_ns("host")
    eager = np.flatnonzero(trace.launched_alone)
    if len(eager) < MIN_KERNELS:
        return []
    best = max(matches(trace, eager), key=lambda m: m.eager_end - m.eager_start - m.replay_ns, default=None)
    if best and best.replay_ns < 0.8 * (best.eager_end - best.eager_start):
        return [replayed_elsewhere(best)]
    if waiting < LAUNCH_SHARE * facts.device_time_ns:
        return []
    return repeated(facts)


def replayed_elsewhere(match: Match) -> Finding:
    eager = match.eager_end - match.eager_start
    return Finding(
        "no-graph",
        f"No CUDA graph here: a replay of the same kernels is {eager / match.replay_ns:.1f} times shorter",
        f"The same {match.kernels:,} kernels take {duration(eager)} launched one by one, and "
        f"{duration(match.replay_ns)} as a graph ({count(match.replays, 'replay')} in this capture).",
        match.eager_start,
        match.eager_end,
        int(eager - match.replay_ns),
    )


def matches(trace: Trace, eager: Column) -> list[Match]:
    """Windows of one stream whose kernels are, name by name and in any order, those of a replayed graph."""
    weight = np.random.default_rng(0).integers(1, 1 << 62, int(trace.gpu["full_name"].max()) + 1, np.uint64)
    result = []
    for rows, times in replayed_graphs(trace):
        if len(rows) < MIN_KERNELS:
            continue
        target = weight[trace.gpu["full_name"][rows]].sum(dtype=np.uint64)
        for window in stream_windows(trace, eager, weight, target, len(rows)):
            result.append(Match(len(rows), float(np.median(times)), len(times), *window))
    return result


def replayed_graphs(trace: Trace) -> list[tuple[Column, list[int]]]:
    """Kernels of each graph that is replayed node by node, with the times (ns) of its replays."""
    nodes = np.flatnonzero(trace.is_kernel & (trace.gpu["graph_node"] > 0) & (trace.gpu["launch"] >= 0))
    order = nodes[np.argsort(trace.gpu["launch"][nodes], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(trace.gpu["launch"][order])) + 1) if len(order) else []
    by_content: dict[bytes, tuple[Column, list[int]]] = {}
    for rows in groups[:2000]:
        key = np.sort(trace.gpu["full_name"][rows]).tobytes()
        took = int(trace.gpu["end"][rows].max() - trace.gpu["start"][rows].min())
        by_content.setdefault(key, (rows, []))[1].append(took)
    return list(by_content.values())[:20]


def stream_windows(
    trace: Trace, eager: Column, weight: Column, target: np.uint64, length: int
) -> list[tuple[int, int]]:
    """(start, end) ns of the windows of ``length`` kernels whose weights sum to the target."""
    found = []
    keys = np.stack([trace.gpu["device"][eager].astype(np.int64), trace.gpu["stream"][eager].astype(np.int64)])
    for device, stream in np.unique(keys, axis=1).T.tolist():
        rows = eager[(keys[0] == device) & (keys[1] == stream)]
        if len(rows) < length:
            continue
        sums = np.concatenate([[np.uint64(0)], np.cumsum(weight[trace.gpu["full_name"][rows]], dtype=np.uint64)])
        for at in np.flatnonzero(sums[length:] - sums[:-length] == target)[:100].tolist():
            window = rows[at : at + length]
            found.append((int(trace.gpu["start"][window[0]]), int(trace.gpu["end"][window].max())))
    return found


def repeated(facts: Facts) -> list[Finding]:
    """Outermost NVTX ranges that launch the same kernels again and again."""
    trace = facts.trace
    groups: dict[bytes, list[int]] = {}
    eager = trace.launched_alone & (trace.gpu["nvtx"] >= 0)
    roots = trace.roots[trace.gpu["nvtx"][eager]]
    names = trace.gpu["full_name"][eager]
    order = np.lexsort((names, roots))
    for part in np.split(order, np.flatnonzero(np.diff(roots[order])) + 1) if len(order) else []:
        if len(part) >= MIN_KERNELS:
            groups.setdefault(names[part].tobytes(), []).append(int(roots[part[0]]))
    best = max(groups.items(), key=lambda g: len(g[0]) * len(g[1]), default=None)
    if best is None or len(best[1]) < 2:
        return []
    return [describe_repeated(facts, len(best[0]) // names.itemsize, best[1])]


def shown(facts: Facts, ranges: list[int]) -> tuple[int, int]:
    """Two ranges that follow each other, half-way through; one where two would be half the capture or more."""
    nvtx, at = facts.trace.nvtx, max(1, len(ranges) // 2)
    start, middle, end = (int(nvtx[c][ranges[i]]) for c, i in (("start", at - 1), ("end", at - 1), ("end", at)))
    return (start, end) if 2 * (end - start) < facts.span_ns else (start, middle)


def gaps_in(facts: Facts, ranges: Column) -> Column:
    """Whether each gap overlaps any of these NVTX ranges: one binary search a gap, however many ranges there are.

    Ranges that overlap each other are merged first; then only the last that starts before a gap's end can reach into it.
    """
    begin, stop = facts.trace.nvtx["start"][ranges], facts.trace.nvtx["end"][ranges]
    order = np.argsort(begin, kind="stable")
    start, end = lanes.union(begin[order], stop[order])
    last = np.searchsorted(start, facts.gaps.end, "left") - 1
    return np.asarray((last >= 0) & (end[np.maximum(last, 0)] > facts.gaps.start))


def describe_repeated(facts: Facts, kernels: int, ranges: list[int]) -> Finding:
    trace = facts.trace
    start, end = shown(facts, ranges)
    inside = gaps_in(facts, np.array(ranges))
    waiting = int(sum(facts.gaps.causes[c][inside].sum() for c in ("launch", "host")))
    name = trace.store.name(int(trace.nvtx["name"][ranges[0]]))
    evidence = (
        f"“{name}” and its like repeat exactly, and the GPU waits for the host {duration(waiting)} in them. "
        f"One graph launch would replace {kernels:,} launches."
    )
    blocks = trace.gpu["kind"] == Kind.GRAPH
    if blocks.any():
        took = float(np.median((trace.gpu["end"] - trace.gpu["start"])[blocks]))
        evidence += f" {count(int(blocks.sum()), 'graph replay')} in this capture took {duration(took)} each."
    title = f"No CUDA graph in {len(ranges)} ranges that launch the same {kernels:,} kernels one by one"
    return Finding("no-graph", title, evidence, start, end, waiting)
