"""The GPU waits: long idle gaps with their cause, host synchronisation, exposed copies and communication."""

from __future__ import annotations

import numpy as np

from profiling.events import Column, Kind, Table
from profiling.findings.finding import Facts, Finding
from profiling.orders import small_codes
from profiling.trace import Trace
from profiling.words import count, duration, percent, size

LONG_SHARE = 0.02
LONG_NS = 500_000
MIN_SYNCS = 3
SYNC_SHARE = 0.05
COPY_SHARE = 0.01
COMMUNICATION_SHARE = 0.05
PAGEABLE = 0
HARDLY = 0.01


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
    return [Finding("idle-gap", title, cause(facts, start, end, int(gaps.next[at])), start, end, int(length[at]))]


def cause(facts: Facts, start: int, end: int, following: int) -> str:
    """What the host did in the gap: CUDA calls of any thread, and system calls of the one that launched what follows."""
    trace = facts.trace
    system = longest_call(facts, trace.os, launching_thread(trace, following), start, end)
    known = f" {system[0]} of the launching thread covers {percent(system[1])} of it." if system else ""
    found = longest_call(facts, trace.api, None, start, end)
    if found is None or found[1] < HARDLY:
        said = "No CUDA call" if found is None else "Hardly a CUDA call"
        said = f"{said} runs meanwhile: the host does something else"
        return f"{said}.{known}" if known else f"{said} (data loading, Python, another process)."
    text = f"{found[0]} covers {percent(found[1])} of it"
    return text + ("." if found[1] > 0.5 else f"; the rest is host code outside CUDA.{known}")


def launching_thread(trace: Trace, event: int) -> int:
    launch = int(trace.gpu["launch"][event])
    return int(trace.api["thread"][launch]) if launch >= 0 else -1


def longest_call(facts: Facts, calls: Table, thread: int | None, start: int, end: int) -> tuple[str, float] | None:
    """The name that fills most of a stretch, with its number of calls, and the share of the stretch; None without any."""
    overlap = np.minimum(calls["end"], end) - np.maximum(calls["start"], start)
    overlap = overlap if thread is None else np.where(calls["thread"] == thread, overlap, 0)
    if not len(overlap) or overlap.max() <= 0:
        return None
    names, inverse = small_codes(calls["name"])
    total = np.bincount(inverse, np.maximum(overlap, 0))
    best = int(total.argmax())
    number = int(((overlap > 0) & (inverse == best)).sum())
    name = facts.trace.store.name(int(names[best]))
    return f"{name} ({count(number, 'call')})", min(1.0, float(total[best] / (end - start)))


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
