"""A store as a Chrome trace (Trace Event Format), for Perfetto and whoever reads that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from profiling.events import Kind
from profiling.store import Row, Store

CHUNK_EVENTS = 20_000


def export(store: Store) -> Iterator[str]:
    """The JSON document in pieces, never whole in memory.

    Every row (sub-lane) is a thread of its own, since Perfetto drops events that overlap on one. Times are µs with
    three digits, which is exact.
    """
    yield '{"displayTimeUnit":"ns","traceEvents":['
    lead = ""
    for number, lane in enumerate(store.lanes):
        yield lead + dumps({"ph": "M", "name": "process_name", "pid": number, "args": {"name": lane.label}})
        lead = ",\n"
    for thread, row in enumerate(store.rows):
        about = {"ph": "M", "name": "thread_name", "pid": row.lane, "tid": thread}
        yield lead + dumps(about | {"args": {"name": f"{store.lanes[row.lane].kind} {row.level}"}})
        lead = ",\n"
        for first in range(row.first, row.last, CHUNK_EVENTS):
            yield lead + ",\n".join(events(store, row, thread, first, min(first + CHUNK_EVENTS, row.last)))
    for number, track in enumerate(store.counters, len(store.lanes)):
        samples = (store.column(f"counter_{c}")[track.first : track.last].tolist() for c in ("time", "value"))
        label = json.dumps(track.label)
        yield "".join(
            f'{lead}{{"ph":"C","pid":{number},"tid":0,"ts":{micros(time)},"name":{label},"args":{{"value":{value!r}}}}}'
            for time, value in zip(*samples, strict=True)
        )
    yield "]}\n"


def events(store: Store, row: Row, thread: int, first: int, last: int) -> Iterator[str]:
    start, end = (store.column(c)[first:last].tolist() for c in ("start", "end"))
    names, kinds = (store.column(c)[first:last].tolist() for c in ("name", "kind"))
    known = {i: json.dumps(store.name(i)) for i in set(names)}
    for begin, stop, name, kind in zip(start, end, names, kinds, strict=True):
        yield (
            f'{{"ph":"X","pid":{row.lane},"tid":{thread},"ts":{micros(begin)},"dur":{micros(stop - begin)},'
            f'"cat":"{Kind(kind).name.lower()}","name":{known[name]}}}'
        )


def micros(ns: int) -> str:
    """ns as decimal µs without a float in between."""
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def dumps(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
