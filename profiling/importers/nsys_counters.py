"""GPU metrics of an Nsight Systems export: the table GPU_METRICS, or JSON in GENERIC_EVENTS as older ones wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from profiling import orders
from profiling.events import Counter, clean
from profiling.importers.nsys_devices import integer
from profiling.importers.nsys_sql import NULL, Export
from profiling.importers.nsys_sql import Column as Wanted

DEVICE_MASK = 0xFF
"""The low byte of a typeId is the number of the GPU (NVIDIA's export documentation, GPU metrics)."""
GPU_METRICS: dict[str, Wanted] = {
    "time": (["timestamp"], NULL),
    "type": (["typeId"], 0),
    "metric": (["metricId"], -1),
    "value": (["value"], 0),
}
MAX_JSON_ROWS = 1_000_000


def read(export: Export) -> list[Counter]:
    return [*from_table(export), *from_json(export)]


def from_table(export: Export) -> Iterator[Counter]:
    table = export.integers("GPU_METRICS", GPU_METRICS)
    kept = table["time"] >= 0
    table = {name: column[kept] for name, column in table.items()}
    names = {
        (integer(kind), integer(metric)): clean(name)
        for kind, metric, name in export.texts("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName"))
    }
    order, firsts = orders.by_lane(table["time"], table["time"], [table["type"], table["metric"]])
    for rows in np.split(order, firsts[1:]) if len(order) else []:
        kind, metric = int(table["type"][rows[0]]), int(table["metric"][rows[0]])
        name = names.get((kind, metric), f"metric {metric}")
        yield counter(name, kind & DEVICE_MASK, table["time"][rows], table["value"][rows].astype(np.float64))


def from_json(export: Export) -> Iterator[Counter]:
    """Numbers of JSON events whose type says that they are GPU metrics; nothing else of generic events is read."""
    types = export.texts("GENERIC_EVENT_TYPES", ("typeId", "data"))
    metric_types = {integer(kind) for kind, data in types if re.search(r"gpu.?metric", str(data), re.IGNORECASE)}
    series: dict[tuple[int, str], tuple[list[int], list[float]]] = {}
    for time, kind, data in export.texts("GENERIC_EVENTS", ("timestamp", "typeId", "data"))[:MAX_JSON_ROWS]:
        if integer(kind) not in metric_types or integer(time) < 0 or not isinstance(data, str):
            continue
        for name, number in numbers(data):
            times, values = series.setdefault((integer(kind) & DEVICE_MASK, name), ([], []))
            times.append(integer(time))
            values.append(number)
    for (device, name), (times, values) in series.items():
        yield counter(clean(name), device, np.array(times, np.int64), np.array(values))


def numbers(data: str) -> Iterator[tuple[str, float]]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    for name, value in found.items() if isinstance(found, dict) else ():
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if np.isfinite(number):
            yield str(name), number


def counter(name: str, device: int, time: np.ndarray, value: np.ndarray) -> Counter:
    """``SMs Active [Throughput %]`` is a percentage of its peak; other words in brackets stay, to tell names apart."""
    short = re.sub(r"\s*\[Throughput %\]$", "", name)
    return Counter(f"GPU {device} · {short[:120]}", "%" if "%" in name else "", device, time, value)
