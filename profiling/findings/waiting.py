"""The GPU waits: long idle gaps with their cause, host synchronisation, exposed copies and communication."""

from __future__ import annotations

import numpy as np

from profiling.events import Column, Kind
from profiling.findings.finding import Facts, Finding
from profiling.words import count, duration, percent, size

LONG_SHARE = 0.02
LONG_NS = 500_000
MIN_SYNCS = 3
SYNC_SHARE = 0.05
COPY_SHARE = 0.01
COMMUNICATION_SHARE = 0.05
PAGEABLE = 0


def find(facts: Facts) -> list[Finding]:
    return [*long_gap(facts), *host_syncs(facts), *pageable_copies(facts), *communication(facts)]


def long_gap(facts: Facts) -> list[Finding]:
    """The longest idle time, with the call that the host spent most of it in."""
    gaps = facts.gaps
    length = gaps.end - gaps.start
    if not len(length) or length.max() < max(LONG_NS, LONG_SHARE * facts.span_ns):
        return []
    at = int(length.argmax())
    start, end = int(gaps.start[at]), int(gaps.end[at])
    device = f"GPU {int(gaps.device[at])}"
    title = f"{device} stands idle for {duration(length[at])} in one piece"
    return [Finding("idle-gap", title, cause(facts, start, end), start, end, int(length[at]))]


def cause(facts: Facts, start: int, end: int) -> str:
    api = facts.trace.api
    overlap = np.minimum(api["end"], end) - np.maximum(api["start"], start)
    if not len(overlap) or overlap.max() <= 0:
        return "No CUDA call runs meanwhile: the host does something else (data loading, Python, another process)."
    names, inverse = np.unique(api["name"], return_inverse=True)
    total = np.bincount(inverse, np.maximum(overlap, 0))
    best = int(total.argmax())
    share = min(1.0, total[best] / (end - start))
    calls = int(((overlap > 0) & (inverse == best)).sum())
    text = f"{facts.trace.store.name(int(names[best]))} ({count(calls, 'call')}) covers {percent(share)} of it"
    return text + ("." if share > 0.5 else "; the rest is host code outside CUDA.")


def host_syncs(facts: Facts) -> list[Finding]:
    gaps = facts.gaps
    waited = gaps.causes["sync"]
    hit = np.flatnonzero(waited > 0)
    total = int(waited.sum())
    if len(hit) < MIN_SYNCS or total < SYNC_SHARE * facts.device_time_ns:
        return []
    at = hit[int(waited[hit].argmax())]
    return [
        Finding(
            "host-sync",
            f"The host waits for the GPU {count(len(hit), 'time')}, and the GPU then waits for the host",
            f"After each synchronising call the queue is empty: {duration(total)} idle "
            f"({percent(total / facts.device_time_ns)} of the capture). Keep results on the GPU, or wait for an event "
            "later.",
            int(gaps.start[at]),
            int(gaps.end[at]),
            total,
        )
    ]


def pageable_copies(facts: Facts) -> list[Finding]:
    gpu = facts.trace.gpu
    mask = (gpu["kind"] == Kind.COPY) & ((gpu["src_kind"] == PAGEABLE) | (gpu["dst_kind"] == PAGEABLE))
    exposed = facts.trace.exposed_ns(mask)
    if exposed < COPY_SHARE * facts.device_time_ns:
        return []
    moved = int(np.maximum(gpu["bytes"][mask], 0).sum())
    rate = moved / max(1, int((gpu["end"] - gpu["start"])[mask].sum()))
    title = f"{count(int(mask.sum()), 'pageable copy', 'pageable copies')} on the critical path"
    evidence = (
        f"{size(moved)} at {rate:.1f} GB/s while no kernel runs: {duration(exposed)} "
        f"({percent(exposed / facts.device_time_ns)} of the capture). Pinned memory and another stream let them "
        "overlap."
    )
    return [Finding("pageable-copy", title, evidence, *longest(facts, mask), exposed)]


def communication(facts: Facts) -> list[Finding]:
    mask = facts.trace.communication
    exposed = facts.trace.exposed_ns(mask)
    if exposed < COMMUNICATION_SHARE * facts.device_time_ns:
        return []
    return [
        Finding(
            "communication",
            f"Communication stands exposed for {percent(exposed / facts.device_time_ns)} of the time",
            f"{count(int(mask.sum()), 'collective kernel')} run {duration(exposed)} with nothing beside them: overlap "
            "them with computation, or make fewer and larger ones. Waiting for a slower rank counts in.",
            *longest(facts, mask),
            exposed,
        )
    ]


def longest(facts: Facts, mask: Column) -> tuple[int, int]:
    """The longest event of the mask."""
    rows = np.flatnonzero(mask)
    gpu = facts.trace.gpu
    at = rows[int((gpu["end"][rows] - gpu["start"][rows]).argmax())]
    return int(gpu["start"][at]), int(gpu["end"][at])
