"""Traps of the format, each as a small generated export with the right value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from profiling.importers.limits import Refused
from profiling.trace import Trace
from tests.profiling.captures import PID, THREAD, Export

Imported = Callable[[Export], tuple[dict[str, Any], Trace]]


def test_the_demo_has_the_known_counts(demo: dict[str, Any]) -> None:
    assert demo["kernels"] == 7842
    assert demo["events"] == {
        "kernel": 7842, "copy": 32, "memset": 0, "graph": 0, "api": 15186, "nvtx": 357, "sync": 3, "os": 0,
    }  # fmt: skip
    assert demo["schema"] == "3.20.3"
    assert demo["gpus"] == ["NVIDIA H200"]
    assert demo["span_ns"] == 230_559_068 - 21_079_177


def test_busy_time_is_the_union_of_intervals(export: Export, imported: Imported) -> None:
    export.kernel("a", 100, 200).kernel("b", 150, 250, streamId=8).kernel("c", 300, 400)
    report, _ = imported(export)
    assert report["devices"][0]["busy_ns"] == 250
    assert report["devices"][0]["span_ns"] == 300


def test_the_same_stream_id_on_two_devices_is_two_lanes(export: Export, imported: Imported) -> None:
    export.kernel("a", 100, 200).kernel("a", 100, 200, deviceId=1)
    report, trace = imported(export)
    assert [d["busy_share"] for d in report["devices"]] == [1.0, 1.0]
    assert len(trace.store.lanes) == 2


def test_overlapping_kernels_on_one_stream_get_sub_lanes_and_none_is_dropped(
    export: Export, imported: Imported
) -> None:
    export.kernel("a", 100, 200).kernel("b", 150, 250).kernel("c", 180, 210).kernel("d", 240, 300)
    report, trace = imported(export)
    assert report["kernels"] == 4
    rows = trace.store.window(0, 400, 100)["rows"]
    assert sum(row["count"] for row in rows) == 4
    assert len(rows) == 3


def test_correlation_ids_are_joined_within_their_process(export: Export, imported: Imported) -> None:
    other = 700 << 24
    export.call("cudaLaunchKernel_v7000", 10, 20, 5).kernel("a", 30, 40, correlationId=5)
    export.call("cudaLaunchKernel_v7000", 50, 60, 5, globalTid=other | 700)
    export.kernel("a", 70, 80, correlationId=5, globalPid=other)
    _, trace = imported(export)
    launches = trace.api["start"][trace.gpu["launch"]]
    assert launches.tolist() == [10, 50]


def test_a_kernel_without_a_launch_record_is_kept(export: Export, imported: Imported) -> None:
    export.kernel("a", 30, 40, correlationId=9).kernel("a", 60, 70, correlationId=10)
    report, trace = imported(export)
    assert trace.gpu["launch"].tolist() == [-1, -1]
    assert report["idle_ns"]["unknown"] == 20


def test_a_kernel_that_starts_before_its_launch_gives_no_negative_latency(export: Export, imported: Imported) -> None:
    export.kernel("a", 0 + 100, 200, correlationId=1).call("cudaLaunchKernel", 50, 90, 1)
    export.kernel("a", 300, 400, correlationId=2).call("cudaLaunchKernel", 350, 390, 2)
    report, _ = imported(export)
    assert min(report["idle_ns"].values()) >= 0
    assert sum(report["idle_ns"].values()) == 100


def test_queue_depth_is_not_called_launch_overhead(export: Export, imported: Imported) -> None:
    export.call("cudaLaunchKernel", 10, 20, 1).kernel("a", 100, 200, correlationId=1)
    export.call("cudaLaunchKernel", 20, 30, 2).kernel("b", 5000, 5100, correlationId=2)
    report, _ = imported(export)
    assert report["idle_ns"] == {"launch": 0, "host": 0, "sync": 0, "queued": 4800, "unknown": 0}


def test_nvtx_names_come_from_text_or_from_the_string_table(export: Export, imported: Imported) -> None:
    export.kernel("a", 30, 40)
    export.range("written out", 10, 20).range(None, 30, 40, textId=export.string("by id"))
    _, trace = imported(export)
    assert {trace.store.name(int(i)) for i in trace.nvtx["name"]} == {"written out", "by id"}


def test_an_nvtx_range_without_end_is_drawn_to_the_last_one_and_said(export: Export, imported: Imported) -> None:
    export.kernel("a", 30, 40).range("open", 10, None).range("closed", 20, 90)
    report, trace = imported(export)
    assert trace.nvtx["end"].tolist() == [90, 90]
    assert any("never end" in note for note in report["notes"])


def test_push_pop_ranges_nest_per_thread_and_domain(export: Export, imported: Imported) -> None:
    export.launched("k", 5000, 6000, 1)
    export.range("outer", 1000, 9000).range("inner", 3000, 4500).range("elsewhere", 3500, 8000, globalTid=THREAD + 1)
    _, trace = imported(export)
    assert trace.path(int(trace.gpu["nvtx"][0])) == ["outer", "inner"]


def test_start_end_ranges_may_overlap(export: Export, imported: Imported) -> None:
    export.kernel("k", 10, 20).range("a", 0 + 10, 60, eventType=60).range("b", 30, 90, eventType=60)
    _, trace = imported(export)
    nvtx_rows = [row for row in trace.store.rows if trace.store.lanes[row.lane].kind == "nvtx"]
    assert [row.last - row.first for row in nvtx_rows] == [1, 1]


@pytest.mark.parametrize("metadata", ["META_DATA_EXPORT", "EXPORT_META_DATA"])
def test_old_and_new_metadata_tables_are_read(metadata: str, imported: Imported) -> None:
    report, _ = imported(Export(metadata, "3.0.1").kernel("a", 10, 20))
    assert report["schema"] == "3.0.1"
    assert report["producer"] == "Nsight Systems 2025.3.2.0"


def test_a_newer_schema_is_imported_and_said(imported: Imported) -> None:
    report, _ = imported(Export(schema="3.99.0").kernel("a", 10, 20))
    assert any("3.99.0 is newer" in note for note in report["notes"])


def test_no_gpu_is_assumed_where_none_is_named(export: Export, imported: Imported) -> None:
    report, _ = imported(export.kernel("a", 10, 20))
    assert report["gpus"] == []
    assert report["devices"][0]["name"] is None


def test_two_processes_that_call_their_gpu_zero_are_told_apart(export: Export, imported: Imported) -> None:
    other = 700 << 24
    export.kernel("a", 10, 20).kernel("a", 10, 20, globalPid=other)
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=638)
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=700)
    export.add("TARGET_INFO_GPU", id=0, name="GPU A", smCount=1).add("TARGET_INFO_GPU", id=1, name="GPU B", smCount=1)
    report, _ = imported(export)
    assert {d["id"]: d["name"] for d in report["devices"]} == {0: "GPU A", 1: "GPU B"}


def test_times_that_were_not_recorded_are_left_out_and_counted(export: Export, imported: Imported) -> None:
    export.kernel("a", 1000, 2000).kernel("b", 0, 0).kernel("c", 0, 1500).kernel("d", 5000, 4000)
    report, _ = imported(export)
    assert report["kernels"] == 1
    assert report["span_ns"] == 1000
    assert "1 of 4 kernels end before they start: left out" in report["notes"]
    assert "2 of 4 kernels have no timestamp: left out" in report["notes"]


def test_a_lone_kernel_at_time_zero_is_real(export: Export, imported: Imported) -> None:
    report, _ = imported(export.kernel("a", 0, 50).kernel("b", 60, 90))
    assert report["kernels"] == 2


def test_times_that_are_text_are_named_and_not_read_as_no_kernels(export: Export, imported: Imported) -> None:
    for second in range(9):
        export.kernel("a", f"12:00:0{second}", f"12:00:0{second}.5")
    with pytest.raises(
        Refused, match=r"KERNEL, column start is text in 9 rows .such as “12:00:00”.; column end"
    ) as refused:
        imported(export)
    assert "as integers" in refused.value.hint


def test_some_times_that_are_text_are_counted_and_left_out(export: Export, imported: Imported) -> None:
    report, _ = imported(export.kernel("a", 10, 20).kernel("b", "soon", 40).kernel("c", 50.0, 60.5))
    assert report["kernels"] == 1
    said = next(note for note in report["notes"] if note.startswith("CUPTI"))
    assert "column start is text in 1 row (such as “soon”); column end is real in 1 row (such as “60.5”)" in said


@pytest.mark.parametrize("time", [-(1 << 63) + 1, -(1 << 61), (1 << 63) - 1])
def test_times_that_no_clock_gives_stretch_nothing(time: int, export: Export, imported: Imported) -> None:
    for start in range(1000, 9000, 1000):
        export.kernel("a", start, start + 10)
    report, _ = imported(export.kernel("b", min(time, 50), max(time, 60)))
    assert (report["kernels"], report["span_ns"]) == (8, 7010)
    assert any("1 of 9 kernels last longer than 100 days" in note for note in report["notes"])


def test_rows_need_no_order(export: Export, imported: Imported) -> None:
    for start in np.random.default_rng(1).permutation(200).tolist():
        export.kernel("a", 1000 + 10 * start, 1005 + 10 * start)
    _, trace = imported(export)
    assert (np.diff(trace.store.column("start")) > 0).all()


def test_epoch_times_become_relative(export: Export, imported: Imported) -> None:
    epoch = 1_796_001_468_934_721_270
    report, trace = imported(export.kernel("a", epoch, epoch + 7).kernel("b", epoch + 100, epoch + 200))
    assert trace.store.column("start").tolist() == [0, 100]
    assert report["span_ns"] == 200


def test_a_graph_traced_as_a_block_is_busy_time(export: Export, imported: Imported) -> None:
    export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=100, end=900).kernel("a", 1000, 1100)
    report, _ = imported(export)
    assert report["devices"][0]["busy_ns"] == 900
    assert report["kernels"] == 1


def test_a_graph_block_and_its_nodes_are_not_counted_twice(export: Export, imported: Imported) -> None:
    export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=100, end=900, correlationId=3)
    export.kernel("a", 150, 850, graphNodeId=4, correlationId=3)
    report, _ = imported(export)
    assert report["devices"][0]["busy_ns"] == 800


def test_a_capture_without_kernels_is_imported_and_says_so(export: Export, imported: Imported) -> None:
    report, _ = imported(export.range("step", 10, 1000))
    assert report["kernels"] == 0
    assert report["label"] == "no kernels captured"
    assert "no kernels captured: CUDA was not traced" in report["label_reason"]
    assert "kernels" in report["not_captured"]


def test_names_are_text_whatever_they_hold(export: Export, imported: Imported) -> None:
    export.kernel("<script>alert(1)</script>", 10, 20).kernel("bell\x07 \u202egnol", 30, 40)
    export.kernel("x" * 100_000, 50, 60).kernel("数 kernel", 70, 80)
    report, _ = imported(export)
    names = {k["name"] for k in report["top_kernels"]}
    assert "<script>alert(1)</script>" in names
    assert "bell\ufffd \ufffdgnol" in names
    assert max(map(len, names)) == 4096
    assert "数 kernel" in names


def test_bad_utf8_in_a_name_does_not_end_the_import(export: Export, imported: Imported) -> None:
    export.kernel("good", 10, 20).kernel("bad", 30, 40)
    export.extra_sql.append("UPDATE StringIds SET value = CAST(x'6261ff64' AS TEXT) WHERE value = 'bad'")
    report, _ = imported(export)
    assert {k["name"] for k in report["top_kernels"]} == {"good", "ba\ufffdd"}


def test_a_missing_string_table_still_shows_the_kernels(export: Export, imported: Imported) -> None:
    export.kernel("a", 10, 20)
    export.extra_sql.append("DROP TABLE StringIds")
    report, _ = imported(export)
    assert report["kernels"] == 1
    assert any("StringIds" in note for note in report["notes"])


def test_process_and_thread_names_lose_path_and_arguments(export: Export, imported: Imported) -> None:
    export.call("cudaLaunchKernel", 10, 20, 1).kernel("a", 30, 40, correlationId=1)
    export.kernel("a", 50, 60, globalPid=700 << 24)
    export.extra_sql += [
        "CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT)",
        f"INSERT INTO PROCESSES VALUES ({PID}, 638, '/opt/secret/python3 --token=abc')",
    ]
    _, trace = imported(export)
    labels = " ".join(lane.label for lane in trace.store.lanes)
    assert "python3 638" in labels
    assert "secret" not in labels
    assert "token" not in labels
