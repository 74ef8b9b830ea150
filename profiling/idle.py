"""Why a GPU is idle: every gap between its busy intervals, divided by cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiling import lanes
from profiling.events import Column
from profiling.orders import small_codes
from profiling.trace import Trace

CAUSES = ("launch", "host", "sync", "queued", "unknown")
"""launch: inside the launch call of the next event (exposed launch overhead). host: the host had not yet called.
sync: the host was waiting in a synchronising call when the GPU ran dry. queued: launched already, not yet started
(latency, a dependency; queue depth is no overhead). unknown: no launch recorded."""


@dataclass(frozen=True)
class Gaps:
    """Idle intervals of all devices.

    ``next`` is the index (in ``Trace.gpu``) of the event that ends each one; ``causes`` holds the ns of each cause,
    which sum to the gap's length.
    """

    start: Column
    end: Column
    device: Column
    next: Column
    causes: dict[str, Column]

    def total_ns(self, cause: str) -> int:
        return int(self.causes[cause].sum())


def gaps(trace: Trace) -> Gaps:
    parts = [device_gaps(trace, device["id"], *trace.busy(device)) for device in trace.devices]
    start, end, device, following = (np.concatenate([np.empty(0, np.int64), *(p[i] for p in parts)]) for i in range(4))
    return Gaps(start, end, device, following, divide(trace, start, end, following))


def device_gaps(trace: Trace, device: int, begin: Column, stop: Column) -> tuple[Column, Column, Column, Column]:
    start, end = stop[:-1], begin[1:]
    mine = np.flatnonzero(trace.gpu["device"] == device)
    following = mine[np.searchsorted(trace.gpu["start"][mine], end, "left")] if len(end) else np.empty(0, np.int64)
    return start, end, np.full(len(start), device), following


def divide(trace: Trace, start: Column, end: Column, following: Column) -> dict[str, Column]:
    """Cut each gap at the borders of the next event's launch call. The three parts are never negative."""
    launch = trace.gpu["launch"][following].astype(np.int64)
    known = launch >= 0
    call = np.maximum(launch, 0)
    has_calls = len(trace.api["start"]) > 0
    call_start = trace.api["start"][call] if has_calls else start
    call_end = trace.api["end"][call] if has_calls else start
    late = np.clip(call_start, start, end) - start
    inside = np.clip(call_end, start, end) - np.clip(call_start, start, end)
    queued = end - np.clip(call_end, start, end)
    waited = host_was_waiting(trace, start, call, known)
    zero = np.zeros(len(start), np.int64)
    return {
        "launch": np.where(known, inside, zero),
        "host": np.where(known & ~waited, late, zero),
        "sync": np.where(known & waited, late, zero),
        "queued": np.where(known, queued, zero),
        "unknown": np.where(known, zero, end - start),
    }


def synchronising(trace: Trace) -> Column:
    """Calls that return only when the GPU has got that far: …Synchronize, and copies that are not …Async."""
    if not len(trace.api["start"]):
        return np.empty(0, bool)
    used = small_codes(trace.api["name"])[0]
    names = [trace.store.name(int(i)) for i in used]
    waiting = ["Synchronize" in n or ("emcpy" in n and "Async" not in n) for n in names]
    return np.isin(trace.api["name"], used[np.array(waiting, bool)])


def host_was_waiting(trace: Trace, times: Column, call: Column, known: Column) -> Column:
    """Whether the thread that launches next stood in a synchronising call at each time."""
    result = np.zeros(len(times), bool)
    waits = synchronising(trace)
    if not waits.any():
        return result
    threads = trace.api["thread"]
    for thread in np.unique(threads[waits]).tolist():
        mine = waits & (threads == thread)
        order = np.argsort(trace.api["start"][mine], kind="stable")
        begin, stop = lanes.union(trace.api["start"][mine][order], trace.api["end"][mine][order])
        place = np.searchsorted(begin, times, "right") - 1
        inside = (place >= 0) & (stop[np.maximum(place, 0)] >= times)
        result |= inside & known & (threads[call] == thread)
    return result
