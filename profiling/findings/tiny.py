"""Many launches of one tiny kernel: launching costs more than running."""

from __future__ import annotations

import numpy as np

from profiling.events import Column
from profiling.findings.finding import Facts, Finding
from profiling.words import count, duration, percent

MIN_LAUNCHES = 100
TINY_NS = 10_000
"""About what one launch costs on the host; a kernel below it cannot hide the next launch."""
MIN_SHARE = 0.02
MIN_SHARE_OF_LAUNCHES = 0.05


def find(facts: Facts) -> list[Finding]:
    trace = facts.trace
    rows = np.flatnonzero(trace.launched_alone)
    if len(rows) < MIN_LAUNCHES:
        return []
    enough = max(MIN_LAUNCHES, MIN_SHARE_OF_LAUNCHES * len(rows))
    names, calls = np.unique(trace.gpu["name"][rows], return_counts=True)
    found = [describe(facts, rows[trace.gpu["name"][rows] == name]) for name in names[calls >= enough]]
    return sorted((f for f in found if f), key=lambda f: -f.saving_ns)[:2]


def describe(facts: Facts, rows: Column) -> Finding | None:
    trace, gpu = facts.trace, facts.trace.gpu
    length = gpu["end"][rows] - gpu["start"][rows]
    before = np.isin(facts.gaps.next, rows)
    waited = int(sum(facts.gaps.causes[c][before].sum() for c in ("launch", "host")))
    if length.mean() > TINY_NS or waited < MIN_SHARE * facts.device_time_ns:
        return None
    name = trace.store.name(int(gpu["name"][rows[0]]))
    runs = int((trace.is_kernel & (gpu["name"] == gpu["name"][rows[0]])).sum())
    title = f"{count(len(rows), 'launch', 'launches')} of {name}, {duration(length.mean())} each"
    evidence = f"{percent(len(rows) / int(trace.launched_alone.sum()))} of all launches. "
    launch = gpu["launch"][rows]
    if (launch >= 0).any():
        calls = launch[launch >= 0]
        cost = (trace.api["end"][calls] - trace.api["start"][calls]).mean()
        evidence += f"Launching takes {duration(cost)} of host time apiece; "
    evidence += (
        f"the GPU stands idle for {duration(waited)} before them "
        f"({percent(waited / facts.device_time_ns)} of the capture): fuse them, or capture them in a graph."
    )
    if runs > len(rows):
        evidence += f" {count(runs - len(rows), 'more run', 'more run')} inside CUDA graphs."
    variants = len(np.unique(gpu["full_name"][rows]))
    if variants > 1:
        evidence += f" {count(variants, 'instantiation')} of the template."
    start, end = densest(facts, rows)
    return Finding("tiny-kernel", title, evidence, start, end, waited)


def densest(facts: Facts, rows: Column) -> tuple[int, int]:
    """The outermost NVTX range with most of them; without NVTX, or where that is half the capture or more, the closest run
    of a hundred."""
    gpu, nvtx = facts.trace.gpu, facts.trace.nvtx
    inside = gpu["nvtx"][rows]
    if (inside >= 0).any():
        roots, counts = np.unique(facts.trace.roots[inside[inside >= 0]], return_counts=True)
        best = roots[counts.argmax()]
        start, end = int(nvtx["start"][best]), int(nvtx["end"][best])
        if 2 * (end - start) < facts.span_ns:
            return start, end
    width = min(100, len(rows)) - 1
    spread = gpu["end"][rows[width:]] - gpu["start"][rows[: len(rows) - width]]
    at = int(spread.argmin())
    return int(gpu["start"][rows[at]]), int(gpu["end"][rows[at + width]])
