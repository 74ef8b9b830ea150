"""One event in full: what the timeline shows on a click."""

from __future__ import annotations

from typing import Any

import numpy as np

from profiling.events import Kind
from profiling.store import Store
from profiling.words import duration, percent, size

MEMORY_KINDS = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device static"}


def describe(store: Store, event: int) -> dict[str, Any]:
    """``id``, ``row``, ``name``, ``start``, ``end`` (ns) and ``facts``: pairs of what and how much, in words."""
    start, end = int(store.column("start")[event]), int(store.column("end")[event])
    kind = Kind(int(store.column("kind")[event]))
    row = store.row_of(event)
    facts = [
        ("lane", store.lanes[store.rows[row].lane].label),
        ("start", f"{start / 1e6:,.6f} ms"),
        ("duration", duration(end - start)),
    ]
    side = int(store.column("side")[event])
    if store.is_gpu(event):
        facts += gpu_facts(store, side, kind, start)
    elif kind == Kind.NVTX:
        facts += path_fact(store, int(store.column("nvtx_parent")[side]))
    return {
        "id": event,
        "row": row,
        "kind": kind.name.lower(),
        "name": store.name(int(store.column("name")[event])),
        "start": start,
        "end": end,
        "facts": [list(pair) for pair in facts],
    }


def gpu_facts(store: Store, side: int, kind: Kind, start: int) -> list[tuple[str, str]]:
    def value(column: str) -> int:
        return int(store.column(f"gpu_{column}")[side])

    facts: list[tuple[str, str]] = []
    if kind == Kind.KERNEL:
        facts += [
            (what, f"{value(f'{what}_x'):,} × {value(f'{what}_y'):,} × {value(f'{what}_z'):,}")
            for what in ("grid", "block")
            if value(f"{what}_x") >= 0
        ]
        facts += [("registers", f"{value('registers')} a thread")] if value("registers") >= 0 else []
        shared = max(0, value("static_shared_bytes")) + max(0, value("dynamic_shared_bytes"))
        facts += [("shared memory", f"{size(shared)} a block")] if value("static_shared_bytes") >= 0 else []
    if kind in (Kind.COPY, Kind.MEMSET) and value("bytes") >= 0:
        facts.append(("bytes", size(value("bytes"))))
    if kind == Kind.COPY and value("src_kind") >= 0:
        words = [MEMORY_KINDS.get(value(c), "unknown") for c in ("src_kind", "dst_kind")]
        facts.append(("memory", f"{words[0]} to {words[1]}"))
    facts += launch_facts(store, value("launch"), start)
    facts += path_fact(store, value("nvtx"))
    if kind == Kind.KERNEL:
        facts += share_fact(store, side)
        facts.append(("full name", store.name(value("full_name"))))
    return facts


def launch_facts(store: Store, launch: int, start: int) -> list[tuple[str, str]]:
    if launch < 0:
        return [("launch", "not recorded")]
    call = int(store.column("api_event")[launch])
    begin, stop = int(store.column("start")[call]), int(store.column("end")[call])
    facts = [("launched by", f"{store.name(int(store.column('name')[call]))}, {duration(stop - begin)}")]
    waited = start - stop
    return [*facts, ("queued", duration(waited))] if waited >= 0 else facts


def path_fact(store: Store, nvtx: int) -> list[tuple[str, str]]:
    names: list[str] = []
    while nvtx >= 0:
        names.insert(0, store.name(int(store.column("name")[int(store.column("nvtx_event")[nvtx])])))
        nvtx = int(store.column("nvtx_parent")[nvtx])
    return [("NVTX", " / ".join(names))] if names else []


def share_fact(store: Store, side: int) -> list[tuple[str, str]]:
    """How much of all kernel time kernels of this name take."""
    events = store.column("gpu_event")
    kernels = events[store.column("kind")[events] == Kind.KERNEL]
    length = store.column("end")[kernels] - store.column("start")[kernels]
    same = store.column("name")[kernels] == store.column("name")[events[side]]
    share = float(length[same].sum() / max(1, length.sum()))
    return [("this kernel", f"{int(np.count_nonzero(same)):,} calls, {percent(share)} of kernel time")]
