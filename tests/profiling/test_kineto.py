"""torch.profiler traces, whole and faulty."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from profiling.importers import Refused, import_profile
from profiling.kernel_names import short_name
from profiling.store import Store
from profiling.trace import Trace
from tests.profiling.conftest import ROOT, SHARED
from tests.profiling.traces_made import call, kernel, names, operator, run, starts, trace

OWN = ROOT / "tests" / "data" / "profiles"
SAMPLES = sorted(OWN.glob("*.json.gz")) + sorted((SHARED / "public").glob("*/*.json.gz"))


def reference(path: Path) -> dict[str, Any]:
    """Figures of a trace, computed in the plainest way: the whole tree in memory, decimal text to integers."""
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)["traceEvents"]

    def ns(value: Any) -> int:
        whole, _, part = str(value).partition(".")
        return int(whole + part.ljust(3, "0")[:3])

    on_gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    intervals = sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["args"]["device"]) for e in on_gpu)
    busy: Counter[int] = Counter()
    for device in {d for _, _, d in intervals}:
        reach = -(1 << 62)
        for start, end in ((s, e) for s, e, d in intervals if d == device):
            busy[device] += max(0, end - max(start, reach))
            reach = max(reach, end)
    totals: Counter[str] = Counter()
    for event in (e for e in on_gpu if e["cat"] == "kernel"):
        totals[short_name(event["name"])] += ns(event["dur"])
    return {
        "kernels": sum(e["cat"] == "kernel" for e in on_gpu),
        "copies": sum(e["cat"] == "gpu_memcpy" for e in on_gpu),
        "span_ns": max(e for _, e, _ in intervals) - intervals[0][0] if intervals else None,
        "busy_ns": dict(busy),
        "top": sorted(totals.values(), reverse=True)[:5],
    }


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_counts_span_and_busy_time_are_those_of_the_plain_reading(path: Path, tmp_path: Path) -> None:
    report, want = import_profile(path, tmp_path / "store").report, reference(path)
    assert report["kernels"] == want["kernels"]
    assert report["events"]["copy"] == want["copies"]
    assert {d["id"]: d["busy_ns"] for d in report["devices"]} == want["busy_ns"]
    assert [k["total_ns"] for k in report["top_kernels"][:5]] == want["top"]
    if want["span_ns"] is not None:
        assert report["span_ns"] == want["span_ns"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")
def test_a_timeline_of_memory_is_refused_as_no_trace(tmp_path: Path) -> None:
    path = next((SHARED / "public" / "hta").glob("*memory_timeline.raw.gz"))
    with pytest.raises(Refused, match="no trace events"):
        import_profile(path, tmp_path / "store")


def test_a_graph_launch_owns_all_its_kernels(tmp_path: Path) -> None:
    import_profile(OWN / "decode_cudagraph.pt.trace.json.gz", tmp_path / "store")
    found = Trace(Store(tmp_path / "store"))
    assert int(found.launched_alone.sum()) == 0
    launches = {found.call_words(int(i)) for i in found.gpu["launch"][found.is_kernel]}
    assert launches == {"cudaGraphLaunch"}


def test_overlapping_kernels_are_all_kept(tmp_path: Path) -> None:
    report, found = run(trace(kernel(1, 10), kernel(5, 10), kernel(9, 10)), tmp_path)
    assert report["kernels"] == 3
    assert len([row for row in found.store.rows if found.store.lanes[row.lane].kind == "gpu"]) == 3
    assert report["devices"][0]["busy_ns"] == 18_000


def test_a_duration_that_runs_into_the_next_kernel_costs_neither(tmp_path: Path) -> None:
    """Rounding to µs makes neighbours overlap by less than one: nobody may drop them, and busy time is counted once."""
    report, found = run(trace(kernel(1, 10.001), kernel(11, 5)), tmp_path)
    assert starts(found) == [1000, 11_000]
    assert report["devices"][0]["busy_ns"] == 15_000


def test_unsorted_events_come_out_sorted(tmp_path: Path) -> None:
    events = [kernel(ts) for ts in range(0, 1000, 10)]
    random.Random(1).shuffle(events)
    _, found = run(trace(*events), tmp_path)
    assert starts(found) == [ts * 1000 for ts in range(0, 1000, 10)]


def test_negative_durations_are_counted_and_left_out(tmp_path: Path) -> None:
    report, _ = run(trace(kernel(10), kernel(20, -4)), tmp_path)
    assert report["kernels"] == 1
    assert report["span_ns"] == 5_000
    assert any("end before they start" in note for note in report["notes"])


def test_half_the_trace_at_zero_does_not_stretch_the_span(tmp_path: Path) -> None:
    report, _ = run(trace(*[kernel(0) for _ in range(5)], *[kernel(10**9 + i * 10) for i in range(5)]), tmp_path)
    assert report["kernels"] == 5
    assert report["span_ns"] == 45_000
    assert any("5 of 10" in note and "no timestamp" in note for note in report["notes"])


def test_half_a_relative_trace_at_zero_is_left_out_too(tmp_path: Path) -> None:
    report, _ = run(trace(*[kernel(0) for _ in range(5)], *[kernel(20 + i * 10) for i in range(5)]), tmp_path)
    assert report["kernels"] == 5
    assert report["span_ns"] == 45_000


def test_a_trace_may_begin_at_zero(tmp_path: Path) -> None:
    report, found = run(trace(operator(0, 50), operator(0, 20), kernel(0, 10), kernel(5, 10)), tmp_path)
    assert starts(found) == [0, 5_000]
    assert report["events"]["nvtx"] == 2
    assert report["notes"] == []


def test_timestamps_may_be_strings(tmp_path: Path) -> None:
    report, found = run(trace(kernel("1712195495505543.213", "1.5"), kernel("1712195495505553.213", "1.5")), tmp_path)
    assert starts(found) == [0, 10_000]
    assert report["span_ns"] == 11_500


def test_integer_and_float_times_mix(tmp_path: Path) -> None:
    _, found = run(trace(kernel(10, 1), kernel(12.345, 0.001)), tmp_path)
    assert starts(found) == [10_000, 12_345]
    assert found.gpu["end"].tolist() == [11_000, 12_346]


def test_events_without_a_time_are_counted(tmp_path: Path) -> None:
    untimed = {"ph": "X", "cat": "kernel", "name": "k", "ts": 3}
    report, _ = run(trace(kernel(1), untimed, kernel("soon")), tmp_path)
    assert report["kernels"] == 1
    assert any("2 events have no usable time" in note for note in report["notes"])


def test_a_metadata_only_trace_says_why_it_is_empty(tmp_path: Path) -> None:
    metadata = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}
    report, _ = run(trace(metadata), tmp_path)
    assert report["label"] == "no kernels captured"
    assert "only metadata" in report["label_reason"]
    assert report["span_ns"] is None


def test_an_empty_list_of_events_is_a_trace_without_kernels(tmp_path: Path) -> None:
    report, _ = run(trace(), tmp_path)
    assert report["label"] == "no kernels captured"


def test_a_cpu_only_trace_keeps_its_operators_and_says_how_to_record_the_gpu(tmp_path: Path) -> None:
    report, _ = run(trace(operator(1), operator(20)), tmp_path)
    assert report["events"]["nvtx"] == 2
    assert "ProfilerActivity.CUDA" in report["label_reason"]


def test_a_trace_without_distributed_info_or_device_names_imports(tmp_path: Path) -> None:
    report, _ = run({"traceEvents": [kernel(1), kernel(10)]}, tmp_path)
    assert report["kernels"] == 2
    assert report["gpus"] == []
    assert report["devices"][0]["name"] is None


def test_an_unlisted_gpu_is_not_taken_for_another_kind(tmp_path: Path) -> None:
    listed = [{"id": 0, "name": "NVIDIA A100"}, {"id": 1, "name": "NVIDIA H100"}]
    report, _ = run(trace(kernel(1, device=5), deviceProperties=listed), tmp_path)
    assert report["devices"][0]["name"] is None


def test_an_amd_gpu_numbered_by_node_has_the_name_that_all_have(tmp_path: Path) -> None:
    listed = [{"id": i, "name": "AMD Instinct MI300X"} for i in range(8)]
    report, _ = run(trace(kernel(1, device=9), call(0, name="hipLaunchKernel"), deviceProperties=listed), tmp_path)
    assert report["gpus"] == ["AMD Instinct MI300X"]


def test_the_same_stream_of_two_gpus_is_two_lanes(tmp_path: Path) -> None:
    report, _ = run(trace(kernel(0, 10, device=0), kernel(0, 10, device=1)), tmp_path)
    assert [d["busy_share"] for d in report["devices"]] == [1.0, 1.0]


def test_kernels_before_their_launch_show_no_negative_latency(tmp_path: Path) -> None:
    events = [call(100 + 20 * i, correlation=i + 1) for i in range(3)]
    events += [kernel(90 + 20 * i, correlation=i + 1) for i in range(3)]
    report, _ = run(trace(*events), tmp_path)
    assert any("3 GPU events start before the call" in note for note in report["notes"])
    assert all(value >= 0 for value in report["idle_ns"].values())


def test_a_kernel_knows_its_launch_and_its_operators(tmp_path: Path) -> None:
    events = [operator(0, 100, "step"), operator(10, 50, "aten::mm"), call(20), kernel(40, correlation=1)]
    _, found = run(trace(*events), tmp_path)
    assert found.call_words(int(found.gpu["launch"][0])) == "cudaLaunchKernel"
    assert found.path(int(found.gpu["nvtx"][0])) == ["step", "aten::mm"]


def test_two_processes_may_use_one_correlation_id(tmp_path: Path) -> None:
    events = [call(0, correlation=1, pid=1), call(0, correlation=2, pid=2), kernel(5, correlation=2)]
    _, found = run(trace(*events), tmp_path)
    launch = int(found.gpu["launch"][0])
    assert launch >= 0
    assert found.store.column("api_thread")[launch] == 2


def test_begin_and_end_events_are_paired_by_thread(tmp_path: Path) -> None:
    common = {"pid": 1, "cat": "user_annotation"}
    events = [
        {"ph": "B", "name": "outer", "tid": 1, "ts": 0, **common},
        {"ph": "B", "name": "other", "tid": 2, "ts": 1, **common},
        {"ph": "B", "name": "inner", "tid": 1, "ts": 2, **common},
        {"ph": "E", "tid": 1, "ts": 3, "pid": 1},
        {"ph": "E", "tid": 1, "ts": 9, "pid": 1},
        {"ph": "E", "tid": 3, "ts": 9, "pid": 1},
    ]
    report, found = run(trace(*events), tmp_path)
    assert report["events"]["nvtx"] == 2
    lengths = {
        found.store.name(int(n)): int(e - s)
        for n, s, e in zip(*(found.nvtx[c] for c in ("name", "start", "end")), strict=True)
    }
    assert lengths == {"outer": 9_000, "inner": 1_000}
    assert any("2 events begin or end without" in note for note in report["notes"])


def test_a_bare_list_of_events_is_a_trace_even_without_its_end(tmp_path: Path) -> None:
    text = json.dumps([kernel(1), kernel(10)])
    report, _ = run(text[:-1] + ",\n", tmp_path)
    assert report["kernels"] == 2
    assert any("has no end" in note for note in report["notes"])


def test_facts_may_stand_behind_the_events(tmp_path: Path) -> None:
    content = {"traceEvents": [kernel(1)], "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
    report, _ = run(content, tmp_path)
    assert report["gpus"] == ["NVIDIA H200"]


def test_what_the_job_says_of_itself_is_not_kept(tmp_path: Path) -> None:
    secrets = {"username": "must-not-be-kept", "INFO": ["must-not-be-kept"], "traceName": "/home/must-not-be-kept/x"}
    report, _ = run(trace(kernel(1, kernel_env="must-not-be-kept"), **secrets), tmp_path)
    assert "must-not-be-kept" not in json.dumps(report)
    for file in (tmp_path / "store").iterdir():
        assert b"must-not-be-kept" not in file.read_bytes()


def test_numbers_of_any_kind_in_args_do_no_harm(tmp_path: Path) -> None:
    odd = kernel(1, grid=[1e300, -5, "3"], block="none", correlation=1 << 80)
    odd["args"] |= {"stream": "0x0", "registers per thread": None, "device": True}
    report, found = run(trace(odd), tmp_path)
    assert report["kernels"] == 1
    assert names(found) == ["k"]


def test_pids_of_any_kind_do_no_harm(tmp_path: Path) -> None:
    events: list[Any] = [operator(i) for i in range(4)]
    for event, pid in zip(events, ["Spans", None, {"a": 1}, 3.5], strict=True):
        event["pid"] = pid
    report, _ = run(trace(kernel(0), *events), tmp_path)
    assert report["events"]["nvtx"] == 4
