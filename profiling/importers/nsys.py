"""Nsight Systems exports (`nsys export --type sqlite`), schemas 3.0 to 3.25.

What is read is an allow-list: kernels, copies, CUDA calls, NVTX ranges, synchronisation, GPU names, the names of
processes and threads that own events. Environment, host name, command line, output and file paths are never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from profiling.events import (
    API_COLUMNS,
    GPU_COLUMNS,
    NVTX_COLUMNS,
    OS_COLUMNS,
    SYNC_COLUMNS,
    Capture,
    Column,
    Kind,
    Names,
    Table,
    concatenate,
)
from profiling.importers import nsys_counters
from profiling.importers.limits import Limits, Progress, Refused
from profiling.importers.nsys_devices import name_devices, name_owners
from profiling.importers.nsys_sql import NULL, Export, Odd
from profiling.importers.nsys_sql import Column as Wanted
from profiling.importers.times import keep_valid, shift_to_origin
from profiling.kernel_names import unmangled

PROCESS_MASK = ~0xFFFFFF
"""A globalTid with its low 24 bits cleared is the globalPid of its process."""
NVTX_PUSH_POP, NVTX_START_END, NVTX_MARK, NVTX_DOMAIN = 59, 60, 34, 75
CUPTI = "CUPTI_ACTIVITY_KIND_"
COPY_WORDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "peer to peer", 11: "unified HtoD", 12: "unified DtoH"}
COPY_WORDS |= {3: "HtoArray", 4: "ArrayToH", 5: "ArrayToArray", 6: "ArrayToD", 7: "DtoArray", 13: "unified DtoD"}
SYNC_WORDS = {1: "Event synchronize", 2: "Stream waits for event", 3: "Stream synchronize", 4: "Context synchronize"}

TIMES: dict[str, Wanted] = {"start": (["start"], NULL), "end": (["end"], NULL)}
ON_DEVICE: dict[str, Wanted] = TIMES | {
    "process": (["globalPid"], 0),
    "device": (["deviceId"], -1),
    "context": (["contextId"], -1),
    "stream": (["streamId"], -1),
    "correlation": (["correlationId"], -1),
    "graph_node": (["graphNodeId"], -1),
}
KERNEL: dict[str, Wanted] = ON_DEVICE | {
    "name_id": (["shortName", "demangledName", "mangledName"], -1),
    "full_id": (["demangledName", "shortName"], -1),
    "grid_x": (["gridX"], -1),
    "grid_y": (["gridY"], -1),
    "grid_z": (["gridZ"], -1),
    "block_x": (["blockX"], -1),
    "block_y": (["blockY"], -1),
    "block_z": (["blockZ"], -1),
    "registers": (["registersPerThread"], -1),
    "static_shared_bytes": (["staticSharedMemory"], -1),
    "dynamic_shared_bytes": (["dynamicSharedMemory"], -1),
}
COPY: dict[str, Wanted] = ON_DEVICE | {
    "bytes": (["bytes"], -1),
    "copy_kind": (["copyKind"], -1),
    "src_kind": (["srcKind"], -1),
    "dst_kind": (["dstKind"], -1),
}
MEMSET: dict[str, Wanted] = ON_DEVICE | {"bytes": (["bytes"], -1), "dst_kind": (["memKind"], -1)}
GRAPH: dict[str, Wanted] = ON_DEVICE | {"graph": (["graphId", "graphExecId"], -1)}
API: dict[str, Wanted] = TIMES | {
    "thread": (["globalTid"], 0),
    "correlation": (["correlationId"], -1),
    "name_id": (["nameId"], -1),
}
OS: dict[str, Wanted] = TIMES | {"thread": (["globalTid"], 0), "name_id": (["nameId"], -1)}
NVTX: dict[str, Wanted] = TIMES | {
    "thread": (["globalTid"], 0),
    "domain": (["domainId"], 0),
    "style": (["eventType"], NVTX_PUSH_POP),
    "text": (["intern_text(text)"], -1),
    "text_id": (["textId"], -1),
}
SYNC: dict[str, Wanted] = TIMES | {"process": (["globalPid"], 0), "type": (["syncType", "deprecatedSyncType"], 0)}


def read(path: Path, progress: Progress, limits: Limits) -> Capture:
    """Read an export.

    :raises Refused: when the file is damaged, cut, or a database of something else.
    """
    export = Export(path, limits)
    try:
        return Reader(export, progress, limits).read()
    finally:
        export.close()


class Interned(dict[object, int]):
    """Ids of texts, looked up for each row: known ones without a call into Python code."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __missing__(self, text: object) -> int:
        found = self[text] = self._names.intern(text)
        return found


class Reader:
    """One pass over an export's tables into a ``Capture``."""

    def __init__(self, export: Export, progress: Progress, limits: Limits) -> None:
        self.export, self.progress, self.limits = export, progress, limits
        self.capture = Capture("nsys-sqlite", names=Names(limits.max_name_chars))
        self.nvtx_share = 0.0
        self.nvtx_odd: list[Odd] = []

    def read(self) -> Capture:
        capture = self.capture
        self._read_metadata()
        with ThreadPoolExecutor(1) as second:  # SQLite works without Python's lock: two large tables at a time
            ranges = second.submit(self._read_ranges)
            gpu, api, sync, os = self._gpu(), self._api(), self._sync(), self._os()
            capture.counters = nsys_counters.read(self.export)
            nvtx = self._nvtx(ranges)
        self._name_strings([*gpu, api, nvtx, os])
        capture.gpu = concatenate(gpu, GPU_COLUMNS)
        capture.api = concatenate([api], API_COLUMNS)
        capture.nvtx = concatenate([nvtx], NVTX_COLUMNS)
        capture.sync = concatenate([sync], SYNC_COLUMNS)
        capture.os = concatenate([os], OS_COLUMNS)
        shift_to_origin(capture)
        name_devices(self.export, capture)
        name_owners(self.export, capture)
        return capture

    def _read_metadata(self) -> None:
        export = self.export
        table = next((t for t in ("META_DATA_EXPORT", "EXPORT_META_DATA") if export.has(t)), "")
        facts = {str(k): str(v) for k, v in export.texts(table, ("name", "value"))} if table else {}
        known = any(t.startswith(CUPTI) for t in export.tables) or "NVTX_EVENTS" in export.tables
        if not known and "StringIds" not in export.tables and "EXPORT_SCHEMA_VERSION" not in facts:
            tables = ", ".join(sorted(export.tables)[:5]) or "none"
            raise Refused(
                f"a SQLite database, but no Nsight Systems export (its tables: {tables[:200]})",
                "Export the report with `nsys export --type sqlite FILE.nsys-rep` and upload that file.",
                format="sqlite",
            )
        product = re.sub(r"^NVIDIA ", "", facts.get("EXPORT_PRODUCT_NAME", "Nsight Systems"))
        version = facts.get("EXPORT_PRODUCT_VERSION", "")
        self.capture.producer = f"{product} {version}".strip()[:80]
        self.capture.schema = facts.get("EXPORT_SCHEMA_VERSION", "")[:40]
        major, _, rest = self.capture.schema.partition(".")
        minor = rest.partition(".")[0]
        if major.isdigit() and (int(major), int(minor or 0) if minor.isdigit() else 0) > (3, 25):
            self.capture.notes.append(f"schema {self.capture.schema} is newer than 3.25, the newest one tested")

    def _table(self, name: str, columns: dict[str, Wanted], percent: tuple[int, int], what: str) -> Table:
        low, high = percent
        table = self.export.integers(
            name, columns, lambda share: self.progress(int(low + (high - low) * share), f"reading {what}")
        )
        return self._counted(name, table, what)

    def _counted(self, name: str, table: Table, what: str) -> Table:
        if not len(table["start"]):
            self.capture.not_captured.append(what)
        self.capture.counts[name] = len(table["start"])
        return table

    def _timed(self, name: str, columns: dict[str, Wanted], percent: tuple[int, int], what: str, lane: str) -> Table:
        table = self._table(name, columns, percent, what)
        self._say_odd_times(name, len(table["start"]), self.export.odd_values(name, ["start", "end"]))
        missing = (table["start"] == NULL) | (table["end"] == NULL)
        if missing.any():
            self.capture.notes.append(f"{int(missing.sum()):,} {what} have no start or no end: left out")
            table = {key: column[~missing] for key, column in table.items()}
        return keep_valid(table, table[lane], what, self.capture.notes)

    def _say_odd_times(self, name: str, rows: int, found: list[Odd]) -> None:
        """Note what is no time. Where no row has one, this is not what nsys wrote, and the whole file is refused."""
        said = "; ".join(map(str, found))
        if any(odd.rows == rows for odd in found):
            raise Refused(
                f"an Nsight Systems export whose times are no whole numbers: in {name}, {said} of {rows:,}",
                "Times are nanoseconds as integers. Export the report again with `nsys export --type sqlite FILE.nsys-rep`, "
                "and upload that file as it is.",
                format="nsys-sqlite",
            )
        if found:
            self.capture.notes.append(f"{name}: {said}, where nanoseconds as whole numbers belong")

    def _gpu(self) -> list[Table]:
        kernels = self._timed(CUPTI + "KERNEL", KERNEL, (2, 25), "kernels", "stream")
        kernels["kind"] = np.full(len(kernels["start"]), Kind.KERNEL)
        copies = self._timed(CUPTI + "MEMCPY", COPY, (25, 28), "copies", "stream")
        copies["kind"] = np.full(len(copies["start"]), Kind.COPY)
        copies["name"] = self._words(copies["copy_kind"], lambda k: f"Copy {COPY_WORDS.get(k, 'of unknown kind')}")
        memsets = self._timed(CUPTI + "MEMSET", MEMSET, (28, 30), "memsets", "stream")
        memsets["kind"] = np.full(len(memsets["start"]), Kind.MEMSET)
        memsets["name"] = self._words(np.zeros(len(memsets["start"]), np.int64), lambda _: "Memset")
        graphs = self._timed(CUPTI + "GRAPH_TRACE", GRAPH, (30, 31), "whole CUDA graphs", "stream")
        graphs["kind"] = np.full(len(graphs["start"]), Kind.GRAPH)
        graphs["name"] = self._words(graphs["graph"], lambda g: f"CUDA graph {g}" if g >= 0 else "CUDA graph")
        for table in (copies, memsets, graphs):
            table["full_name"] = table["name"]
        return [kernels, copies, memsets, graphs]

    def _api(self) -> Table:
        return self._timed(CUPTI + "RUNTIME", API, (31, 55), "CUDA API calls", "thread")

    def _read_ranges(self) -> Table:
        """The NVTX table through a connection of its own: runs beside the other tables."""
        export = Export(self.export.path, self.limits)
        try:
            export.register("intern_text", Interned(self.capture.names).__getitem__)
            table = export.integers("NVTX_EVENTS", NVTX, lambda share: setattr(self, "nvtx_share", share))
            self.nvtx_odd = export.odd_values("NVTX_EVENTS", ["start", "end"])
            return table
        finally:
            export.close()

    def _nvtx(self, ranges: Future[Table]) -> Table:
        while not ranges.done():
            wait([ranges], timeout=0.5)
            self.progress(int(57 + 30 * self.nvtx_share), "reading NVTX ranges")
        table = self._counted("NVTX_EVENTS", ranges.result(), "NVTX ranges")
        self._say_odd_times("NVTX_EVENTS", len(table["start"]), self.nvtx_odd)
        self._name_domains(table)
        wanted = np.isin(table["style"], (NVTX_PUSH_POP, NVTX_START_END, NVTX_MARK)) & (table["start"] != NULL)
        table = {key: column[wanted] for key, column in table.items()}
        marks = (table["style"] == NVTX_MARK) & (table["end"] == NULL)
        table["end"] = np.where(marks, table["start"], table["end"])
        unended = table["end"] == NULL
        if unended.any():
            last = max(int(table["start"].max()), int(table["end"].max()))
            table["end"] = np.where(unended, last, table["end"])
            self.capture.notes.append(f"{int(unended.sum()):,} NVTX ranges never end: drawn to the last NVTX event")
        return keep_valid(table, table["thread"], "NVTX ranges", self.capture.notes)

    def _name_domains(self, table: Table) -> None:
        for index in np.flatnonzero(table["style"] == NVTX_DOMAIN)[:1000]:
            text = int(table["text"][index])
            if text >= 0:
                self.capture.domain_names[int(table["domain"][index])] = self.capture.names.texts[text]

    def _sync(self) -> Table:
        table = self._timed(CUPTI + "SYNCHRONIZATION", SYNC, (55, 57), "synchronisation", "process")
        table["name"] = self._words(table["type"], lambda t: SYNC_WORDS.get(t, "Synchronize"))
        return table

    def _os(self) -> Table:
        return self._timed("OSRT_API", OS, (57, 58), "OS runtime calls", "thread")

    def _words(self, codes: Column, word: Callable[[int], str]) -> Column:
        values, inverse = np.unique(codes, return_inverse=True)
        ids = np.array([self.capture.names.intern(word(int(value))) for value in values], np.int32)
        return ids[inverse] if len(values) else np.empty(0, np.int32)

    def _name_strings(self, tables: list[Table]) -> None:
        """Replace StringIds of kernels, calls and ranges by names; no other string of the file is read."""
        columns = [t[c] for t in tables for c in ("name_id", "full_id", "text_id") if c in t]
        used = np.unique(np.concatenate([np.unique(column) for column in columns]))
        texts = self._strings(used[used >= 0])
        words = [texts.get(int(u), missing_name(int(u))) for u in used]
        ids = np.array([self.capture.names.intern(word) for word in words], np.int32)
        bare = np.array([self.capture.names.intern(unmangled(word)) for word in words], np.int32)
        for table in tables:
            if "name_id" in table:
                table["name"] = bare[np.searchsorted(used, table["name_id"])]
            if "full_id" in table:
                table["full_name"] = ids[np.searchsorted(used, table["full_id"])]
            if "text_id" in table:
                by_id = ids[np.searchsorted(used, table["text_id"])]
                table["name"] = np.where(table["text"] >= 0, table["text"], by_id)

    def _strings(self, used: Column) -> dict[int, str]:
        wanted = set(used.tolist())
        if not self.export.has("StringIds"):
            self.capture.notes.append("the table of names (StringIds) is missing: kernels are shown by number")
            return {}
        with self.export.reading("StringIds"):
            rows = self.export.connection.execute('SELECT "id", "value" FROM "StringIds" NOT INDEXED')
            return {i: without_version(v) for i, v in rows if i in wanted}


def missing_name(string_id: int) -> str:
    return f"(name {string_id} missing)" if string_id >= 0 else "(no name)"


def without_version(value: object) -> str:
    """``cudaLaunchKernel_v7000`` → ``cudaLaunchKernel``; other names as they are."""
    text = value if isinstance(value, str) else str(value)
    return re.sub(r"^(cu\w+)_v\d+$", r"\1", text) if text.startswith("cu") else text
