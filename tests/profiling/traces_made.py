"""Chrome traces made to order, as text: what a profiler wrote, faults and all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace

Imported = Callable[[bytes | str | dict[str, Any] | list[Any]], tuple[dict[str, Any], Trace]]


def kernel(ts: Any, dur: Any = 5, name: str = "k", correlation: int | None = None, **args: Any) -> dict[str, Any]:
    more = {} if correlation is None else {"correlation": correlation}
    place = {"device": 0, "stream": 7, "context": 1} | more | args
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": place}


def call(ts: Any, dur: Any = 3, name: str = "cudaLaunchKernel", correlation: int = 1, pid: int = 449) -> dict[str, Any]:
    args = {"correlation": correlation}
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": pid, "tid": pid, "ts": ts, "dur": dur, "args": args}


def operator(ts: Any, dur: Any = 10, name: str = "aten::mul", tid: int = 449) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 449, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def trace(*events: Any, **facts: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]} | facts | {
        "traceEvents": list(events)
    }  # fmt: skip


def run(content: bytes | str | dict[str, Any] | list[Any], folder: Path) -> tuple[dict[str, Any], Trace]:
    """Import the content: its report, and the trace to look into."""
    if not isinstance(content, bytes | str):
        content = json.dumps(content)
    file = folder / "made.json"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    report = import_profile(file, folder / "store").report
    return report, Trace(Store(folder / "store"))


def starts(found: Trace) -> list[int]:
    return sorted(found.gpu["start"].tolist())


def names(found: Trace) -> list[str]:
    return [found.store.name(int(n)) for n in found.gpu["full_name"]]
