"""Generated captures in the shape of a training run: nested ranges on host threads, calls, kernels on streams."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from profiling.events import Column

PID = 638 << 24
STREAMS = 4
THREADS = 4
NAMES = 400
DEPTH = 5
"""Ranges nest five deep: one range at each depth begins for every launch, on average."""
TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER, "
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, "
    "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER, returnValue INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER, "
    "text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, smCount INTEGER",
}


def export(path: Path, kernels: int) -> dict[str, int]:
    """Write an `nsys export` database: ``kernels`` kernels, twice as many calls, five times as many ranges.

    Returns the number of rows by table. Half of the ranges carry their text, half a StringId, as real ones do.
    """
    rng = np.random.default_rng(7)
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;")
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    strings = [f"kernel_{i}<float, {i % 7}>" for i in range(NAMES)] + ["cudaLaunchKernel_v7000", "cudaGetLastError"]
    strings += [f"layer_{i}" for i in range(NAMES)]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(strings))
    connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    facts = [("EXPORT_PRODUCT_NAME", "Generated"), ("EXPORT_SCHEMA_VERSION", "3.20.3")]
    connection.executemany("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", facts)
    connection.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'Generated GPU', 132)")
    counts = {
        "CUPTI_ACTIVITY_KIND_KERNEL": fill(connection, "CUPTI_ACTIVITY_KIND_KERNEL", kernel_rows(rng, kernels)),
        "CUPTI_ACTIVITY_KIND_RUNTIME": fill(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", call_rows(kernels)),
        "NVTX_EVENTS": fill(connection, "NVTX_EVENTS", range_rows(kernels)),
    }
    connection.commit()
    connection.close()
    return counts


def fill(connection: sqlite3.Connection, table: str, columns: list[Column | list[str | None]]) -> int:
    marks = ", ".join("?" * len(columns))
    rows: Iterable[tuple[object, ...]] = zip(
        *(c.tolist() if isinstance(c, np.ndarray) else c for c in columns), strict=True
    )
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    return len(columns[0])


def launch_times(kernels: int) -> Column:
    """When each launch call begins, ns: 20 µs apart on each of the threads."""
    return 1_000_000 + (np.arange(kernels) // THREADS) * 20_000 + (np.arange(kernels) % THREADS) * 3_000


def kernel_rows(rng: np.random.Generator, kernels: int) -> list[Column | list[str | None]]:
    index = np.arange(kernels)
    start = launch_times(kernels) + 6_000
    name = rng.integers(0, NAMES, kernels)
    shape = [np.full(kernels, value) for value in (32, 264, 1, 1, 128, 1, 1, 0, 16384, 0)]
    end = start + rng.integers(1_000, 19_000, kernels)
    where = [np.zeros(kernels, np.int64), np.ones(kernels, np.int64), 7 + index % STREAMS, index + 1]
    return [start, end, *where, np.full(kernels, PID), name, name, *shape]


def call_rows(kernels: int) -> list[Column | list[str | None]]:
    """Two calls a kernel: the launch, then a question for errors."""
    launch = launch_times(kernels)
    start = np.stack([launch, launch + 5_500], 1).ravel()
    end = start + np.tile([5_000, 300], kernels)
    correlation = np.stack([np.arange(kernels) + 1, np.arange(kernels) + 1 + kernels], 1).ravel()
    thread = np.repeat(PID + 1 + np.arange(kernels) % THREADS, 2)
    zero = np.zeros(2 * kernels, np.int64)
    return [start, end, zero, thread, correlation, np.tile([NAMES, NAMES + 1], kernels), zero]


def range_rows(kernels: int) -> list[Column | list[str | None]]:
    """Five ranges a kernel, one inside the other around its launch: as the framework's own ranges do."""
    launch = np.repeat(launch_times(kernels), DEPTH)
    depth = np.tile(np.arange(DEPTH), kernels)
    start, end = launch - 100 * (DEPTH - depth), launch + 6_000 + 100 * (DEPTH - depth)
    number = len(launch)
    names = (np.arange(number) // (50 * DEPTH)) % NAMES
    by_text = depth % 2 == 0
    texts = [f"op_{n}" if t else None for n, t in zip(names.tolist(), by_text.tolist(), strict=True)]
    ids = [None if t else NAMES + 2 + n for n, t in zip(names.tolist(), by_text.tolist(), strict=True)]
    thread = np.repeat(PID + 1 + np.arange(kernels) % THREADS, DEPTH)
    zero = np.zeros(number, np.int64)
    return [start, end, np.full(number, 59), zero, zero, zero, texts, thread, thread, ids, zero]  # type: ignore[list-item]
