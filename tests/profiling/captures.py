"""Small Nsight Systems exports, made to order: real SQLite files in the schema of `nsys export`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PID = 638 << 24
THREAD = PID | 638
COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, "
        "demangledName INT, shortName INT, registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, "
        "blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT, graphNodeId INT"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT",
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, bytes INT, "
        "copyKind INT, srcKind INT, dstKind INT"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, graphId INT"
    ),
    "NVTX_EVENTS": (
        "start INT, end INT, eventType INT, text TEXT, globalTid INT, endGlobalTid INT, textId INT, domainId INT"
    ),
    "TARGET_INFO_GPU": "id INT, name TEXT, smCount INT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INT, cudaId INT, pid INT",
    "OSRT_API": "start INT, end INT, eventClass INT, globalTid INT, nameId INT, returnValue INT, nestingLevel INT",
    "GPU_METRICS": "timestamp INT, typeId INT, metricId INT, value INT",
    "TARGET_INFO_GPU_METRICS": "typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName TEXT",
    "GENERIC_EVENT_TYPES": "typeId INT, sourceId INT, data TEXT",
    "GENERIC_EVENTS": "rawTimestamp INT, timestamp INT, typeId INT, data TEXT",
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PID, "correlationId": 0},
    "CUPTI_ACTIVITY_KIND_RUNTIME": {"eventClass": 0, "globalTid": THREAD, "correlationId": 0},
    "CUPTI_ACTIVITY_KIND_MEMCPY": {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PID, "correlationId": 0},
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PID, "graphId": 2},
    "OSRT_API": {"globalTid": THREAD},
    "NVTX_EVENTS": {"eventType": 59, "globalTid": THREAD, "domainId": 0},
}


class Export:
    """An export in the making. ``write`` leaves the file behind; rows are dicts over the table's defaults."""

    def __init__(self, metadata: str = "META_DATA_EXPORT", schema: str = "3.20.3") -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.strings: dict[object, int] = {}
        self.metadata, self.schema = metadata, schema
        self.extra_sql: list[str] = []

    def string(self, text: object) -> int:
        return self.strings.setdefault(text, 100 + len(self.strings))

    def add(self, table: str, **values: Any) -> Export:
        self.rows.setdefault(table, []).append(DEFAULTS.get(table, {}) | values)
        return self

    def kernel(self, name: object, start: int, end: int, **values: Any) -> Export:
        number = self.string(name)
        more = {"start": start, "end": end, "shortName": number, "demangledName": number}
        return self.add("CUPTI_ACTIVITY_KIND_KERNEL", **(more | values))

    def call(self, name: str, start: int, end: int, correlation: int = 0, **values: Any) -> Export:
        more = {"start": start, "end": end, "correlationId": correlation, "nameId": self.string(name)}
        return self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **(more | values))

    def launched(self, name: str, start: int, end: int, correlation: int, **values: Any) -> Export:
        """A kernel with its launch call of 1 µs, that returns where the kernel starts."""
        self.call("cudaLaunchKernel_v7000", start - 1000, start, correlation)
        return self.kernel(name, start, end, correlationId=correlation, **values)

    def range(self, text: str | None, start: int, end: int | None, **values: Any) -> Export:
        return self.add("NVTX_EVENTS", **({"text": text, "start": start, "end": end} | values))

    def write(self, path: Path) -> Path:
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
            connection.executemany("INSERT INTO StringIds VALUES (?, ?)", ((i, t) for t, i in self.strings.items()))
            connection.execute(f"CREATE TABLE {self.metadata} (name TEXT, value TEXT)")
            facts = {"EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems", "EXPORT_PRODUCT_VERSION": "2025.3.2.0"}
            facts["EXPORT_SCHEMA_VERSION"] = self.schema
            connection.executemany(f"INSERT INTO {self.metadata} VALUES (?, ?)", facts.items())
            for table, rows in self.rows.items():
                self._fill(connection, table, rows)
            for sql in self.extra_sql:
                connection.execute(sql)
        connection.close()
        return path

    def _fill(self, connection: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
        connection.execute(f"CREATE TABLE {table} ({COLUMNS[table]})")
        for row in rows:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
