"""Windows of ten million events: our store against plain SQLite, the same data and the same windows."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiling import store_writer
from profiling.bench.generate import DEPTH, PID
from profiling.events import (
    API_COLUMNS,
    GPU_COLUMNS,
    NVTX_COLUMNS,
    Capture,
    Column,
    Kind,
    Table,
    concatenate,
)
from profiling.store import Store

PIXELS = 1500
STREAMS, CALLERS, RANGED = 6, 4, 6
"""16 lanes: streams, threads that call, threads with ranges."""
MAX_PAYLOAD_BYTES = 150_000


def capture(events: int) -> Capture:
    """About ``events`` events on 16 lanes: a third kernels, a third calls, a third ranges nested five deep."""
    rng = np.random.default_rng(11)
    third = events // 3
    made = Capture("bench", producer="Generated")
    names = np.array([made.names.intern(f"name_{i}") for i in range(400)], np.int32)
    gpu = one_after_another(rng, third, STREAMS, 4_000, names)
    gpu |= {"device": gpu["lane"] * 0, "process": gpu["lane"] * 0 + PID, "stream": gpu["lane"]}
    gpu |= {"context": gpu["lane"] * 0, "full_name": gpu["name"], "kind": np.full(third, Kind.KERNEL)}
    gpu["correlation"] = np.arange(third)
    api = one_after_another(rng, third, CALLERS, 3_000, names)
    api |= {"thread": PID + api["lane"], "correlation": np.arange(third)}
    made.gpu, made.api = concatenate([gpu], GPU_COLUMNS), concatenate([api], API_COLUMNS)
    made.nvtx = concatenate([nested(rng, events - 2 * third, names)], NVTX_COLUMNS)
    return made


def one_after_another(rng: np.random.Generator, count: int, lanes: int, mean_ns: int, names: Column) -> Table:
    lane = np.arange(count) % lanes
    pitch = rng.integers(mean_ns, 3 * mean_ns, count // lanes + 1)
    start = np.cumsum(pitch)[np.arange(count) // lanes]
    return {
        "start": start,
        "end": start + rng.integers(mean_ns // 4, mean_ns, count),
        "name": names[rng.integers(0, len(names), count)],
        "lane": lane,
    }


def nested(rng: np.random.Generator, count: int, names: Column) -> Table:
    index = np.arange(count)
    depth, group = index % DEPTH, index // DEPTH
    start = (group // RANGED) * 40_000 + 200 * depth
    return {
        "start": start,
        "end": (group // RANGED) * 40_000 + 36_000 - 200 * depth,
        "name": names[rng.integers(0, len(names), count)],
        "thread": PID + 100 + group % RANGED,
        "domain": np.zeros(count, np.int64),
        "style": np.full(count, 59),
    }


def random_windows(store: Store, number: int) -> list[tuple[int, int]]:
    """Any zoom: widths from 10 µs to the whole capture, spread evenly over their logarithm."""
    rng = np.random.default_rng(13)
    start, end = store.meta["start_ns"], store.meta["end_ns"]
    widths = np.exp(rng.uniform(np.log(10_000), np.log(end - start), number)).astype(np.int64)
    firsts = start + (rng.random(number) * np.maximum(end - start - widths, 1)).astype(np.int64)
    return [(int(first), int(first + width)) for first, width in zip(firsts, widths, strict=True)]


@dataclass(frozen=True)
class Measured:
    """Per window: milliseconds on the wall, milliseconds of CPU (what is left of them on a busy machine), bytes."""

    wall_ms: Column
    cpu_ms: Column
    payload_bytes: Column


def measure(store: Store, windows: list[tuple[int, int]]) -> Measured:
    """Each window from the question to the JSON text that is sent."""
    wall, cpu, sizes = [], [], []
    for lo, hi in windows:
        begun, used = time.perf_counter(), time.thread_time()
        payload = store.window_json(lo, hi, PIXELS)
        wall.append(1e3 * (time.perf_counter() - begun))
        cpu.append(1e3 * (time.thread_time() - used))
        sizes.append(len(payload))
    return Measured(np.array(wall), np.array(cpu), np.array(sizes))


class PlainSqlite:
    """The same events in one indexed SQLite table, asked for the same pictures."""

    def __init__(self, store: Store, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.connection = sqlite3.connect(path)
        self.connection.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-262144;"
            'CREATE TABLE event (row INTEGER, start INTEGER, "end" INTEGER, name INTEGER);'
        )
        self.rows = len(store.rows)
        for index, row in enumerate(store.rows):
            part = (store.column(c)[row.first : row.last].tolist() for c in ("start", "end", "name"))
            values = ((index, *event) for event in zip(*part, strict=True))
            self.connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", values)
        self.connection.executescript('CREATE INDEX by_row ON event (row, start, "end", name); ANALYZE;')

    def window(self, lo: int, hi: int) -> int:
        """Busy ns per row and pixel of [lo, hi], as one would write it in SQL; returns the number of cells."""
        width = max(1, (hi - lo) // PIXELS)
        cells = 0
        for row in range(self.rows):
            cells += len(
                self.connection.execute(
                    'SELECT (max(start, ?1) - ?1) / ?3, sum(min("end", ?2) - max(start, ?1)), count(*), min(name) '
                    'FROM event WHERE row = ?4 AND start <= ?2 AND "end" >= ?1 GROUP BY 1',
                    (lo, hi, width, row),
                ).fetchall()
            )
        return cells

    def measure(self, windows: list[tuple[int, int]]) -> Column:
        took = []
        for lo, hi in windows:
            begun = time.perf_counter()
            self.window(lo, hi)
            took.append(1e3 * (time.perf_counter() - begun))
        return np.array(took)


def prepare(events: int, folder: Path) -> Store:
    store_writer.write(capture(events), folder)
    return Store(folder)
