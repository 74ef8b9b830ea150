"""Counters and calls into the operating system, from each format, down to what the timeline draws."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiling import chrome
from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace
from tests.profiling.captures import Export

Imported = Callable[[Export], tuple[dict[str, Any], Trace]]
GPU_3 = 0x0A00_0000_0003


def sampled(export: Export) -> Export:
    export.kernel("matmul", 1000, 900_000)
    export.add("TARGET_INFO_GPU_METRICS", typeId=GPU_3, metricId=7, metricName="DRAM Read Bandwidth [Throughput %]")
    export.add("TARGET_INFO_GPU_METRICS", typeId=GPU_3, metricId=8, metricName="SMs Active [Throughput %]")
    for time, value in ((300_000, 50), (-5, 90), (100_000, 20), (600_000, 100), (1_000_000, 0)):
        export.add("GPU_METRICS", timestamp=time, typeId=GPU_3, metricId=7, value=value)
        export.add("GPU_METRICS", timestamp=time, typeId=GPU_3, metricId=8, value=0)
    return export


def levels(store: Store, lo: int, hi: int, pixels: int) -> list[int]:
    rows = [row for row in store.window(lo, hi, pixels)["rows"] if "level" in row]
    assert [row["row"] for row in rows] == [len(store.rows)]
    return list(base64.b64decode(rows[0]["level"]))


def test_gpu_metrics_are_counters_of_their_gpu(export: Export, imported: Imported) -> None:
    report, trace = imported(sampled(export))
    (track,) = trace.store.counters
    assert track.label == "GPU 3 · DRAM Read Bandwidth"
    assert (track.unit, track.low, track.high, track.device) == ("%", 0.0, 100.0, 3)
    assert report["counters"] == 1
    assert "1 counter is 0 throughout: not shown" in report["notes"]


def test_a_pixel_shows_the_mean_of_what_was_sampled_in_it(export: Export, imported: Imported) -> None:
    _, trace = imported(sampled(export))
    assert levels(trace.store, 0, 1_000_000, 10) == [0, *[1 + round(254 * 0.2)] * 2, *[128] * 3, *[255] * 4]
    mean = (2 * 20 + 3 * 50 + 4 * 100) / 9 / 100
    assert levels(trace.store, 100_000, 1_000_000, 1) == [1 + round(254 * mean)]


def test_metrics_in_json_of_older_exports(export: Export, imported: Imported) -> None:
    export.kernel("matmul", 1000, 900_000)
    export.add("GENERIC_EVENT_TYPES", typeId=1, data=json.dumps({"Name": "GPU Metrics"}))
    export.add("GENERIC_EVENT_TYPES", typeId=2, data=json.dumps({"Name": "ETW"}))
    for time, value in ((10, "5"), (20, "7.5")):
        data = json.dumps({"SMs Active": value, "Unit": "none"})
        export.add("GENERIC_EVENTS", timestamp=time, typeId=1, data=data)
        export.add("GENERIC_EVENTS", timestamp=time, typeId=2, data=json.dumps({"ProcessId": 4}))
    export.add("GENERIC_EVENTS", timestamp=30, typeId=1, data="{broken")
    _, trace = imported(export)
    assert [(t.label, t.high) for t in trace.store.counters] == [("GPU 1 · SMs Active", 7.5)]


def test_counter_events_of_a_chrome_trace(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 0, "dur": 10}]
    events += [{"ph": "C", "name": "memory", "pid": 1, "ts": t, "args": {"used": t * 2, "free": 9}} for t in (1, 4, 9)]
    events.append({"ph": "C", "name": "bad", "pid": 1, "ts": 2, "args": {"text": "x", "yes": True}})
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    import_profile(tmp_path / "t.json", tmp_path / "store")
    store = Store(tmp_path / "store")
    assert {t.label: t.high for t in store.counters} == {"memory · used": 18.0, "memory · free": 9.0}
    exported = json.loads("".join(chrome.export(store)))["traceEvents"]
    assert [(e["ts"], e["args"]["value"]) for e in exported if e["ph"] == "C" and "used" in e["name"]] == [
        (1.0, 2.0), (4.0, 8.0), (9.0, 18.0),
    ]  # fmt: skip


def test_calls_into_the_operating_system_have_lanes_and_no_secret(export: Export, imported: Imported) -> None:
    export.kernel("matmul", 1000, 9000)
    export.add("OSRT_API", start=10, end=5000, nameId=export.string("pthread_cond_wait"), nestingLevel=0)
    export.add("OSRT_API", start=20, end=90, nameId=export.string("read"), nestingLevel=1)
    report, trace = imported(export)
    assert report["events"]["os"] == 2
    lanes = [lane.label for lane in trace.store.lanes if lane.kind == "os"]
    assert lanes == ["OS calls · thread 638"]
    names = {trace.store.name(int(i)) for i in trace.store.column("name")}
    assert {"pthread_cond_wait", "read"} <= names


@pytest.mark.parametrize("span", [1, 10, 10_000_000])
def test_a_window_beside_all_samples_shows_none(span: int, export: Export, imported: Imported) -> None:
    _, trace = imported(sampled(export))
    assert not [row for row in trace.store.window(-span, -1 if span > 1 else 0, 100)["rows"] if "level" in row]
    assert np.all(trace.store.column("counter_time") >= 0)
