"""torch.profiler (Kineto) and other Chrome traces: .json and .json.gz, streamed.

What is read is an allow-list: kernels, copies, runtime and driver calls, operators, annotations, Python frames, GPU
names, names of processes and threads that own events. Job names, users, command lines and logs that some builds write
beside the events are never read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from profiling.events import (
    API_COLUMNS,
    GPU_COLUMNS,
    NOT_RECORDED,
    NVTX_COLUMNS,
    SYNC_COLUMNS,
    Capture,
    Counter,
    Kind,
    Names,
    clean,
    concatenate,
)
from profiling.importers import kineto_bytes, kineto_names
from profiling.importers.kineto_document import Document
from profiling.importers.kineto_events import Event, arguments, correlation
from profiling.importers.kineto_names import Role
from profiling.importers.kineto_owners import Owners, name_owners
from profiling.importers.kineto_rows import Rows
from profiling.importers.kineto_times import nanoseconds
from profiling.importers.kineto_valid import keep_valid
from profiling.importers.limits import Limits, Progress, Refused
from profiling.importers.times import shift_to_origin
from profiling.kernel_names import short_name

KEYS = ("schemaVersion", "deviceProperties", "distributedInfo", "roctracer_version", "displayTimeUnit")
MOST = 1 << 62
MAX_SERIES = 1024
PUSH_POP, START_END = 59, 60
OPERATORS, PYTHON, ON_GPU = 0, 1, 2
DOMAIN_OF = {Role.PYTHON: PYTHON, Role.GPU_RANGE: ON_GPU}
RECORD_GPU = "record with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`"


def read(path: Path, progress: Progress, limits: Limits, format: str = "kineto") -> Capture:
    """Read a trace.

    :raises Refused: when the file is cut, damaged, or JSON of something else.
    """
    pieces = kineto_bytes.chunks(path, limits, lambda share: progress(int(2 + 80 * share), "reading events"))
    return Reader(Document(pieces, KEYS), limits, format).read()


class Reader:
    """Sorts the events of a document into the tables of a ``Capture``."""

    def __init__(self, document: Document, limits: Limits, format: str) -> None:
        self.document, self.limits = document, limits
        self.capture = Capture(format, names=Names(limits.max_name_chars))
        self.owners = Owners()
        self.gpu = Rows((*GPU_COLUMNS,))
        self.api, self.ranges, self.sync = (Rows((*c,)) for c in (API_COLUMNS, NVTX_COLUMNS, SYNC_COLUMNS))
        self.roles: dict[Any, Role] = {}
        self.open: dict[tuple[int, Any], list[tuple[Event, int]]] = {}
        self.samples: dict[tuple[int, str, str], tuple[list[int], list[float]]] = {}
        self.counted = {"flow": 0, "counter": 0, "metadata": 0, "untimed": 0, "unpaired": 0, "odd": 0}

    def read(self) -> Capture:
        for batch in self.document.batches():
            for event in batch:
                self._take(event)
            for rows in (self.gpu, self.api, self.ranges, self.sync):
                rows.pack()
            self.limits.check()
            if self.document.events > self.limits.max_events * 2:
                raise Refused("more events than can be imported", "Profile fewer steps.", format="kineto")
        self._check_that_it_is_a_trace()
        self._finish()
        return self.capture

    def _take(self, event: Event) -> None:
        phase = event.ph
        if phase == "X":
            self._complete(event)
        elif phase in ("s", "t", "f"):
            self.counted["flow"] += 1
        elif phase == "M":
            self.counted["metadata"] += 1
            self.owners.describe(event, arguments(event))
        elif phase in ("B", "E"):
            self._begin_or_end(event, (self.owners.thread(event.pid, event.tid), ""))
        elif phase in ("b", "e"):
            key = (str(event.cat), str(event.id), str(event.name))
            self._begin_or_end(event, (self.owners.thread(event.pid, event.tid), key))
        elif phase == "C":
            self._sample(event)
        elif not isinstance(phase, str) or not phase:
            self.counted["odd"] += 1

    def _sample(self, event: Event) -> None:
        """Each number in a counter event's args is a series of its own (Trace Event Format, counter events)."""
        time = nanoseconds(bytes(event.ts))
        self.counted["counter"] += 1
        for series, value in arguments(event).items():
            if time is None or isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
                continue
            key = (self.owners.process(event.pid), clean(event.name)[:120], clean(series)[:60])
            if key in self.samples or len(self.samples) < MAX_SERIES:
                times, values = self.samples.setdefault(key, ([], []))
                times.append(time)
                values.append(float(value))

    def _complete(self, event: Event) -> None:
        role = self._role(event.cat)
        if role == Role.IGNORED:
            return
        start, length = nanoseconds(bytes(event.ts)), nanoseconds(bytes(event.dur))
        if start is None or length is None:
            self.counted["untimed"] += 1
        else:
            self._timed(event, role, start, start + length, PUSH_POP)

    def _role(self, category: Any) -> Role:
        try:
            return self.roles[category]
        except (KeyError, TypeError):
            found = kineto_names.role(category)
            if isinstance(category, str) and len(self.roles) < 10_000:
                self.roles[category] = found
            return found

    def _begin_or_end(self, event: Event, key: tuple[int, Any]) -> None:
        time = nanoseconds(bytes(event.ts))
        if time is None:
            self.counted["untimed"] += 1
        elif event.ph in ("B", "b"):
            self.open.setdefault(key, []).append((event, time))
        elif waiting := self.open.get(key):
            begun, start = waiting.pop()
            role = self._role(begun.cat)
            if role != Role.IGNORED:
                self._timed(begun, role, start, time, PUSH_POP if event.ph == "E" else START_END)
        else:
            self.counted["unpaired"] += 1

    def _timed(self, event: Event, role: Role, start: int, end: int, style: int) -> None:
        name = event.name if isinstance(event.name, str) else clean(event.name)
        if role == Role.KERNEL:
            self._kernel(event, name, start, end)
        elif role in (Role.COPY, Role.MEMSET):
            self._copy(event, name, start, end, role == Role.MEMSET)
        elif role == Role.CALL:
            thread = self.owners.thread(event.pid, event.tid)
            self.api.add((start, end, thread, integer(correlation(event)), self.capture.names.intern(name)))
        elif role == Role.SYNC:
            self.sync.add((start, end, self.owners.process(event.pid), self.capture.names.intern(name)))
        else:
            thread = self.owners.thread(event.pid, event.tid)
            domain = DOMAIN_OF.get(role, OPERATORS)
            self.ranges.add((start, end, thread, domain, self.capture.names.intern(name), style))

    def _place(self, event: Event, args: dict[str, Any]) -> tuple[int, ...]:
        device, stream = integer(args.get("device")), integer(args.get("stream"))
        device = device if device >= 0 else integer(event.pid)
        stream = stream if stream >= 0 else integer(event.tid)
        return (0, device, integer(args.get("context")), stream, integer(args.get("correlation")))

    def _kernel(self, event: Event, name: str, start: int, end: int) -> None:
        args = arguments(event)
        names = self.capture.names
        ids = (names.intern(short_name(name)), names.intern(name))
        node = integer(args.get("graph node id"))
        shape = (*three(args.get("grid")), *three(args.get("block")))
        registers, shared = integer(args.get("registers per thread")), integer(args.get("shared memory"))
        sizes = (registers, NOT_RECORDED, shared, NOT_RECORDED, NOT_RECORDED, NOT_RECORDED, NOT_RECORDED)
        self.gpu.add((start, end, *self._place(event, args), *ids, int(Kind.KERNEL), node, *shape, *sizes))

    def _copy(self, event: Event, name: str, start: int, end: int, memset: bool) -> None:
        args = arguments(event)
        number, words, source, target = kineto_names.copy_kind(name)
        label = "Memset" if memset else f"Copy {words}" if words else name
        ids = (self.capture.names.intern(label), self.capture.names.intern(name))
        kind = int(Kind.MEMSET if memset else Kind.COPY)
        node = integer(args.get("graph node id"))
        sizes = (NOT_RECORDED, NOT_RECORDED, NOT_RECORDED, integer(args.get("bytes")), number, source, target)
        self.gpu.add((start, end, *self._place(event, args), *ids, kind, node, *(NOT_RECORDED,) * 6, *sizes))

    def _check_that_it_is_a_trace(self) -> None:
        document = self.document
        known = document.events - self.counted["odd"]
        if not document.has_events or (document.filled and known <= 0):
            found = ", ".join(sorted(document.facts)[:5])
            what = f" (it has {found})" if found else ""
            raise Refused(
                f"a JSON file, but no trace: it holds no trace events{what}",
                "Upload what `prof.export_chrome_trace(...)` or `tensorboard_trace_handler` of torch.profiler writes.",
                format="json",
            )

    def _finish(self) -> None:
        capture = self.capture
        notes = capture.notes
        capture.counts = {"traceEvents": self.document.events} | {k: v for k, v in self.counted.items() if v}
        raw = [(concatenate([rows.table()], dtypes), *rest) for rows, dtypes, *rest in self._kinds()]
        origin = np.concatenate([table["start"] for table, *_ in raw])
        for table, what, attribute, lanes in raw:
            if not len(table["start"]):
                capture.not_captured.append(what)
            nested = attribute == "nvtx"
            setattr(capture, attribute, keep_valid(table, lanes, nested, origin, what, notes))
        self._note_what_is_odd()
        name_owners(capture, self.owners, self.document.facts)
        self._link()
        self._count()
        shift_to_origin(capture)
        self._explain_missing_kernels()

    def _kinds(self) -> list[tuple[Any, ...]]:
        """Rows, dtypes, what they are in words, the table of the capture, and the columns that tell lanes apart."""
        return [
            (self.gpu, GPU_COLUMNS, "GPU events", "gpu", ("device", "context", "stream")),
            (self.api, API_COLUMNS, "GPU API calls", "api", ("thread",)),
            (self.ranges, NVTX_COLUMNS, "operators and annotations", "nvtx", ("thread", "domain")),
            (self.sync, SYNC_COLUMNS, "synchronisation", "sync", ("process",)),
        ]

    def _note_what_is_odd(self) -> None:
        notes = self.capture.notes
        if self.document.broken:
            notes.append(f"{self.document.broken:,} events are broken JSON: left out")
        if self.counted["untimed"]:
            notes.append(f"{self.counted['untimed']:,} events have no usable time: left out")
        unpaired = self.counted["unpaired"] + sum(len(waiting) for waiting in self.open.values())
        if unpaired:
            notes.append(f"{unpaired:,} events begin or end without their other half: left out")
        if not self.document.closed:
            notes.append("the list of events has no end: the recording may have been stopped early")

    def _link(self) -> None:
        """Give GPU events their process, and mark those that one graph launch brought in."""
        gpu, api = self.capture.gpu, self.capture.api
        if not len(gpu["start"]) or not len(api["start"]):
            return
        owner = np.array([self.owners.process_of[t] for t in api["thread"].tolist()], np.int64)
        keys = api["correlation"]
        usable = np.flatnonzero(keys >= 0)
        names = self.capture.names.texts
        launching = np.array([kind_of_call(text) for text in names] or [0])[api["name"][usable]]
        order = usable[np.lexsort((-launching, keys[usable]))]
        if not len(order):
            gpu["process"][:] = owner[0]
            return
        place = np.minimum(np.searchsorted(keys[order], gpu["correlation"]), len(order) - 1)
        call = order[place]
        hit = (keys[call] == gpu["correlation"]) & (gpu["correlation"] >= 0)
        gpu["process"] = np.where(hit, owner[call], owner[0])
        is_graph = np.array(["GraphLaunch" in text for text in names] or [False])
        in_graph = hit & is_graph[api["name"][call]] & (gpu["graph_node"] <= 0)
        gpu["graph_node"] = np.where(in_graph, np.arange(1, len(in_graph) + 1), gpu["graph_node"])
        early = int((hit & (gpu["start"] < api["start"][call])).sum())
        if early:
            self.capture.notes.append(
                f"{early:,} GPU events start before the call that launched them (the clocks differ): "
                "no launch latency is shown for them"
            )

    def _count(self) -> None:
        several = len({process for process, *_ in self.samples}) > 1
        pids = {number: pid for pid, number in self.owners.processes.items()}
        for (process, name, series), (times, values) in self.samples.items():
            alone = sum(key[:2] == (process, name) for key in self.samples) == 1
            label = name if alone else f"{name} · {series}"
            label += f" · process {str(pids[process])[:40]}" if several else ""
            unit = "%" if "%" in label else ""
            time, value = np.array(times, np.int64), np.array(values)
            self.capture.counters.append(Counter(label, unit, NOT_RECORDED, time, value))

    def _explain_missing_kernels(self) -> None:
        capture, title = self.capture, "No kernels captured"
        if np.any(capture.gpu["kind"] == Kind.KERNEL):
            return
        if len(self.gpu):
            why = "the GPU events that were recorded are copies only, or have impossible times"
        elif len(capture.api["start"]):
            why = "GPU calls were recorded but no kernel ran between start and stop of the capture"
        elif len(capture.nvtx["start"]):
            title = "CPU only: the trace holds no GPU work"
            why = f"the trace holds operators of the CPU only; where a GPU was in use, {RECORD_GPU}"
        else:
            why = "the trace holds only metadata: no step ran while the profiler was active (look at its `schedule`)"
        capture.report = {
            "label": "no kernels captured",
            "label_title": title,
            "label_reason": f"no kernels captured: {why}",
        }


def kind_of_call(name: str) -> int:
    return int("aunch" in name or "emcpy" in name or "emset" in name)


def integer(value: Any) -> int:
    """A count or an id, also as a string of digits (ROCm). NOT_RECORDED where it is none, or is out of range."""
    if type(value) is int and -1 <= value < MOST:
        return value
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < MOST:
        return NOT_RECORDED
    return value


def three(value: Any) -> tuple[int, int, int]:
    if isinstance(value, list) and len(value) == 3:
        x, y, z = value
        return small(x), small(y), small(z)
    return NOT_RECORDED, NOT_RECORDED, NOT_RECORDED


def small(value: Any) -> int:
    number = integer(value)
    return number if number < 1 << 31 else NOT_RECORDED
