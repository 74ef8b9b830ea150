"""A capture in the form that every importer produces and the store writes. No format is visible beyond this point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Table = dict[str, Column]


class Kind(IntEnum):
    """What an event on the timeline is."""

    KERNEL = 0
    COPY = 1
    MEMSET = 2
    GRAPH = 3
    """A CUDA graph traced as one opaque block: busy, its kernels unknown."""
    API = 4
    NVTX = 5
    SYNC = 6
    OS = 7
    """A call into the operating system's libraries (OSRT): file access, locks, waiting."""


GPU_KINDS = (Kind.KERNEL, Kind.COPY, Kind.MEMSET, Kind.GRAPH)
GPU_COLUMNS = {
    "start": np.int64,
    "end": np.int64,
    "process": np.int64,
    "device": np.int32,
    "context": np.int64,
    "stream": np.int64,
    "correlation": np.int64,
    "name": np.int32,
    "full_name": np.int32,
    "kind": np.uint8,
    "graph_node": np.int64,
    "grid_x": np.int32,
    "grid_y": np.int32,
    "grid_z": np.int32,
    "block_x": np.int32,
    "block_y": np.int32,
    "block_z": np.int32,
    "registers": np.int32,
    "static_shared_bytes": np.int32,
    "dynamic_shared_bytes": np.int32,
    "bytes": np.int64,
    "copy_kind": np.int16,
    "src_kind": np.int16,
    "dst_kind": np.int16,
}
API_COLUMNS = {"start": np.int64, "end": np.int64, "thread": np.int64, "correlation": np.int64, "name": np.int32}
NVTX_COLUMNS = {
    "start": np.int64,
    "end": np.int64,
    "thread": np.int64,
    "domain": np.int64,
    "name": np.int32,
    "style": np.uint8,
}
SYNC_COLUMNS = {"start": np.int64, "end": np.int64, "process": np.int64, "name": np.int32}

OS_COLUMNS = {"start": np.int64, "end": np.int64, "thread": np.int64, "name": np.int32}

NO_TIMELINE = {"ncu-rep": "an Nsight Compute report", "ncu-repz": "an Nsight Compute report", "proton": "a call tree"}
"""Formats whose kernels are laid end to end: nothing may be said about what they wait for."""

NOT_RECORDED = -1
"""In columns of counts and ids: the capture does not say."""


@dataclass(frozen=True)
class Counter:
    """Samples over time (ns): each value holds until the next one. ``device`` is -1 where it is of no GPU."""

    label: str
    unit: str
    device: int
    time: Column
    value: Column


def empty(columns: dict[str, Any]) -> Table:
    return {name: np.empty(0, dtype) for name, dtype in columns.items()}


def concatenate(tables: list[Table], columns: dict[str, Any]) -> Table:
    """One table out of several; a column that a table lacks is NOT_RECORDED there."""
    tables = [t for t in tables if t and len(t["start"])]
    if not tables:
        return empty(columns)

    def column(table: Table, name: str, dtype: Any) -> Column:
        if name in table:
            return table[name].astype(dtype, copy=False)
        return np.full(len(table["start"]), NOT_RECORDED if np.issubdtype(dtype, np.signedinteger) else 0, dtype)

    return {name: np.concatenate([column(t, name, dtype) for t in tables]) for name, dtype in columns.items()}


class Names:
    """Strings by small integer. Text of a capture is data: control characters are replaced, length is capped."""

    def __init__(self, max_chars: int = 4096) -> None:
        self.texts: list[str] = []
        self._ids: dict[str, int] = {}
        self._max_chars = max_chars
        self._lock = Lock()

    def intern(self, text: object) -> int:
        key = text if isinstance(text, str) else clean(text)
        found = self._ids.get(key)
        return self._add(key) if found is None else found

    def _add(self, key: str) -> int:
        with self._lock:  # two tables may be read at a time
            if key not in self._ids:
                self.texts.append(clean(key)[: self._max_chars])
                self._ids[key] = len(self.texts) - 1
            return self._ids[key]


def clean(text: object) -> str:
    """Printable text, whatever a capture holds: bytes, surrogates, control characters, NULs."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    plain = str(text).encode("utf-8", "replace").decode("utf-8")
    return plain if plain.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in plain)


@dataclass
class Capture:
    """All that is kept of a profile, by allow-list. Times in ns; ``process`` and ``thread`` are ids of the format."""

    format: str
    producer: str = ""
    schema: str = ""
    names: Names = field(default_factory=Names)
    gpu: Table = field(default_factory=lambda: empty(GPU_COLUMNS))
    api: Table = field(default_factory=lambda: empty(API_COLUMNS))
    nvtx: Table = field(default_factory=lambda: empty(NVTX_COLUMNS))
    sync: Table = field(default_factory=lambda: empty(SYNC_COLUMNS))
    os: Table = field(default_factory=lambda: empty(OS_COLUMNS))
    counters: list[Counter] = field(default_factory=list)
    device_names: dict[int, str] = field(default_factory=dict)
    device_facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    process_labels: dict[int, str] = field(default_factory=dict)
    thread_labels: dict[int, str] = field(default_factory=dict)
    thread_process: dict[int, int] = field(default_factory=dict)
    domain_names: dict[int, str] = field(default_factory=dict)
    range_word: str = "NVTX"
    api_word: str = "CUDA API"
    not_captured: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    """Keys of ``profiling.report`` that this format answers better than a timeline does (counters, call trees)."""
    attach: Callable[[Path], None] | None = None
    """Writes what has no place in the columns into the store folder, before it is complete."""
