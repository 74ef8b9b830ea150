from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from profiling.trace import Trace
from tests.profiling.captures import THREAD, Export

Imported = Callable[[Export], tuple[dict[str, Any], Trace]]


def finding(report: dict[str, Any], rule: str) -> dict[str, Any]:
    found = [f for f in report["findings"] if f["rule"] == rule]
    assert found, f"no finding {rule} among {[f['title'] for f in report['findings']]}"
    return dict(found[0])


def test_the_demo_is_launch_bound_and_busy_7_8_percent(demo: dict[str, Any]) -> None:
    assert demo["label"] == "launch-bound"
    assert demo["label_title"] == "Launch-bound: the GPU is busy 7.8 % of the time"


def test_the_demo_reads_its_cache_in_32_pieces(demo: dict[str, Any]) -> None:
    found = finding(demo, "pieces")
    assert found["title"] == "The same work in 32 pieces"
    assert "mla_chunk_0 … mla_chunk_31 stand inside mla, 8 times over" in found["evidence"]
    assert "decode_step#2 chunk=32768" in found["evidence"]
    assert (found["start_ns"], found["end_ns"]) == (20_649_143, 159_003_103)


def test_the_demo_launches_one_tiny_kernel_thousands_of_times(demo: dict[str, Any]) -> None:
    found = finding(demo, "tiny-kernel")
    assert found["title"].startswith("3,482 launches of vectorized_elementwise_kernel")
    assert "648 more run inside CUDA graphs" in found["evidence"]
    assert demo["top_kernels"][0]["calls"] == 3482 + 648


def test_the_demo_replays_as_a_graph_what_it_launches_one_by_one(demo: dict[str, Any]) -> None:
    found = finding(demo, "no-graph")
    assert "The same 462 kernels take 24.1 ms launched one by one, and 1.37 ms as a graph" in found["evidence"]


def test_every_finding_lies_in_the_capture(demo: dict[str, Any], demo_trace: Trace) -> None:
    for found in demo["findings"]:
        assert demo_trace.store.meta["start_ns"] <= found["start_ns"] < found["end_ns"]
        assert found["end_ns"] <= demo_trace.store.meta["end_ns"]
        assert found["saving_ns"] <= demo["span_ns"]


def test_kernels_back_to_back_are_gpu_busy_without_findings(export: Export, imported: Imported) -> None:
    for i in range(200):
        export.call("cudaLaunchKernel", 10 * i, 10 * i + 5, i + 1)
        export.kernel("gemm", 10_000 + 50_000 * i, 60_000 + 50_000 * i, correlationId=i + 1)
    report, _ = imported(export)
    assert report["label"] == "GPU-busy"
    assert report["findings"] == []


def test_layers_are_not_called_pieces(export: Export, imported: Imported) -> None:
    at = 10_000
    export.range("forward", at - 5000, at + 40 * 50_000)
    for i in range(32):
        export.range(f"layer_{i}", at - 2000, at + 20_000).launched("k", at, at + 1000, i + 1)
        at += 50_000
    report, _ = imported(export)
    assert not [f for f in report["findings"] if f["rule"] == "pieces"]


def test_pieces_that_keep_the_gpu_busy_are_no_finding(export: Export, imported: Imported) -> None:
    at = 10_000
    export.range("attention", at - 5000, at + 33 * 1_000_000)
    for i in range(32):
        export.range(f"chunk_{i}", at - 2000, at + 990_000)
        export.launched("k", at, at + 980_000, 2 * i + 1)
        at += 1_000_000
    report, _ = imported(export)
    assert not [f for f in report["findings"] if f["rule"] == "pieces"]


def waits_for_host(export: Export, call: str, count: int = 20) -> Export:
    """Kernels of 10 µs; after each the host stands in ``call`` until 5 µs later, and launches 40 µs after that."""
    at = 10_000
    for i in range(count):
        export.launched("k", at, at + 10_000, i + 1)
        export.call(call, at + 1000, at + 15_000)
        at += 55_000
    return export


def test_host_synchronisation_is_told_from_slow_launching(imported: Imported) -> None:
    report, _ = imported(waits_for_host(Export(), "cudaStreamSynchronize"))
    assert report["label"] == "sync-bound"
    assert "19 times" in finding(report, "host-sync")["title"]


def test_host_code_between_launches_is_launch_bound(imported: Imported) -> None:
    report, _ = imported(waits_for_host(Export(), "cudaGetLastError"))
    assert report["label"] == "launch-bound"
    assert report["idle_ns"]["sync"] == 0


def test_pageable_copies_alone_on_the_gpu_are_found(export: Export, imported: Imported) -> None:
    at = 10_000
    for i in range(20):
        export.launched("k", at, at + 5000, i + 1)
        export.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start=at + 5000,
            end=at + 55_000,
            bytes=1 << 20,
            copyKind=1,
            srcKind=0,
            dstKind=2,
        )
        at += 60_000
    report, _ = imported(export)
    assert report["label"] == "transfer-bound"
    assert finding(report, "pageable-copy")["title"] == "20 pageable copies on the critical path"


def test_copies_behind_kernels_are_not_exposed(export: Export, imported: Imported) -> None:
    for i in range(20):
        export.launched("k", 10_000 + 50_000 * i, 60_000 + 50_000 * i, i + 1)
    export.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        start=20_000,
        end=900_000,
        streamId=9,
        bytes=1 << 20,
        copyKind=1,
        srcKind=0,
        dstKind=2,
    )
    report, _ = imported(export)
    assert not [f for f in report["findings"] if f["rule"] == "pageable-copy"]


def test_exposed_communication_is_found(export: Export, imported: Imported) -> None:
    at = 10_000
    for i in range(20):
        export.launched("gemm", at, at + 10_000, 2 * i + 1)
        export.launched("ncclDevKernel_AllReduce", at + 10_000, at + 40_000, 2 * i + 2)
        at += 41_000
    report, _ = imported(export)
    assert report["label"] == "communication-bound"
    assert finding(report, "communication")["title"].startswith("Communication stands exposed for 7")


@pytest.mark.parametrize("rule", ["tiny-kernel", "no-graph"])
def test_what_repeats_all_along_is_shown_at_one_place(rule: str, export: Export, imported: Imported) -> None:
    """Ten steps of the same launches, in one range around everything or in one each."""
    if rule == "tiny-kernel":
        export.range("main", 1, 50_000_000)
    for step in range(10):
        begin = 5_000_000 * step
        if rule == "no-graph":
            export.range("step", begin + 10, begin + 4_900_000)
        for i in range(20):
            at = begin + 200_000 * i
            export.launched("tiny", at + 50_000, at + 52_000, 100 * step + i + 1)
    report, _ = imported(export)
    found = finding(report, rule)
    assert found["end_ns"] - found["start_ns"] < report["span_ns"] / 1.9


def test_a_long_gap_names_the_call_that_fills_it(export: Export, imported: Imported) -> None:
    for i in range(20):
        export.launched("k", 10_000 + 20_000 * i, 29_000 + 20_000 * i, i + 1)
    export.call("cudaMalloc_v3020", 420_000, 3_400_000)
    export.launched("k", 3_500_000, 3_600_000, 99)
    report, _ = imported(export)
    found = finding(report, "idle-gap")
    assert found["start_ns"] == 409_000
    assert "cudaMalloc (1 call) covers" in found["evidence"]


@pytest.mark.parametrize("kernels", [1, 9])
def test_a_handful_of_kernels_is_not_enough_data(kernels: int, export: Export, imported: Imported) -> None:
    for i in range(kernels):
        export.kernel("k", 1000 * i + 10, 1000 * i + 20)
    report, _ = imported(export)
    assert report["label"] == "not enough data"


def test_a_tiny_kernel_that_the_gpu_waits_for_is_labelled_launch_bound(demo: dict[str, Any]) -> None:
    kernel = demo["top_kernels"][0]
    assert (kernel["name"], kernel["label"]) == ("vectorized_elementwise_kernel", "launch-bound")
    assert "stands idle" in kernel["label_reason"]


def test_a_kernel_that_keeps_the_gpu_busy_needs_counters(export: Export, imported: Imported) -> None:
    for i in range(20):
        export.call("cudaLaunchKernel", 10 * i, 10 * i + 5, i + 1)
        export.kernel("gemm", 10_000 + 50_000 * i, 60_000 + 50_000 * i, correlationId=i + 1)
    report, _ = imported(export)
    assert report["top_kernels"][0]["label"] == "GPU-busy"
    assert "Nsight Compute" in report["top_kernels"][0]["label_reason"]


def test_a_collective_kernel_is_labelled_communication(export: Export, imported: Imported) -> None:
    for i in range(20):
        export.launched("ncclDevKernel_AllReduce", 10_000 + 50_000 * i, 40_000 + 50_000 * i, i + 1)
    report, _ = imported(export)
    assert report["top_kernels"][0]["label"] == "communication-bound"


def test_a_kernel_without_a_recorded_launch_is_not_labelled(export: Export, imported: Imported) -> None:
    for i in range(20):
        export.kernel("k", 1000 * i + 10, 1000 * i + 20)
    report, _ = imported(export)
    assert report["top_kernels"][0]["label"] == "not enough data"


def grid(export: Export, name: str, blocks: int, calls: int = 1, **values: Any) -> Export:
    shape = {
        "gridX": blocks,
        "gridY": 1,
        "gridZ": 1,
        "blockX": 256,
        "blockY": 1,
        "blockZ": 1,
        "registersPerThread": 128,
    }
    shape |= {"staticSharedMemory": 0, "dynamicSharedMemory": 0}
    for call in range(calls):
        export.launched(name, 10_000 + call * 200_000, 110_000 + call * 200_000, call + 1, **(shape | values))
    return export


def test_a_last_wave_that_is_nearly_empty_is_named_with_its_size(export: Export, imported: Imported) -> None:
    """128 registers × 256 threads: 8 warps of 4,096 registers; 65,536 / 4,096 = 16 warps = 2 blocks on each SM."""
    export.add("TARGET_INFO_GPU", id=0, name="Made", smCount=132)
    report, _ = imported(grid(export, "matmul", 2 * 132 + 8, calls=12))
    found = next(f for f in report["findings"] if f["rule"] == "tail-wave")
    assert found["title"] == "Tail wave: matmul fills the GPU 1.03 times over"
    assert "2 fit on each of 132 SMs (registers): a wave is 264 blocks, and the last one has 8" in found["evidence"]
    assert found["saving_ns"] == pytest.approx(12 * 100_000 * (1 - 272 / 528), rel=1e-3)


@pytest.mark.parametrize("blocks", [2 * 132, 4 * 132, 132])
def test_a_grid_of_whole_waves_has_no_tail(blocks: int, export: Export, imported: Imported) -> None:
    export.add("TARGET_INFO_GPU", id=0, name="Made", smCount=132)
    report, _ = imported(grid(export, "matmul", blocks, calls=12))
    assert not {f["rule"] for f in report["findings"]} & {"tail-wave", "small-grid"}


def test_a_grid_that_leaves_sms_idle_is_named(export: Export, imported: Imported) -> None:
    export.add("TARGET_INFO_GPU", id=0, name="Made", smCount=132)
    report, _ = imported(grid(export, "reduce", 16, calls=12))
    found = next(f for f in report["findings"] if f["rule"] == "small-grid")
    assert found["title"] == "reduce has 16 blocks for 132 SMs"


def test_without_the_number_of_sms_nothing_is_said_of_waves(export: Export, imported: Imported) -> None:
    report, _ = imported(grid(export, "matmul", 2 * 132 + 8, calls=12))
    assert "tail-wave" not in {f["rule"] for f in report["findings"]}


def test_pieces_that_all_have_one_name_are_found(export: Export, imported: Imported) -> None:
    at = 100_000
    for _ in range(3):
        export.range("attention", at, at + 8 * 50_000)
        for piece in range(8):
            begin = at + piece * 50_000
            export.range("kv_chunk", begin + 10, begin + 49_000)
            export.range("aten::slice", begin + 20, begin + 30)
            export.launched("read", begin + 20_000, begin + 22_000, at + piece)
            export.launched("read", begin + 40_000, begin + 42_000, at + piece + 100)
        at += 1_000_000
    report, _ = imported(export)
    found = next(f for f in report["findings"] if f["rule"] == "pieces")
    assert found["title"] == "The same work in 8 pieces"
    assert "kv_chunk stands 8 times inside attention, 3 times over" in found["evidence"]


def test_a_gap_without_cuda_names_what_the_launching_thread_waited_in(export: Export, imported: Imported) -> None:
    for number in range(12):
        export.launched("work", 10_000 + number * 3_000, 12_000 + number * 3_000, number + 1)
    export.launched("late", 9_000_000, 9_010_000, 99)
    export.add("OSRT_API", start=100_000, end=8_900_000, nameId=export.string("read"))
    export.add("OSRT_API", start=0, end=9_900_000, nameId=export.string("poll"), globalTid=THREAD + 1)
    report, _ = imported(export)
    evidence = finding(report, "idle-gap")["evidence"]
    assert evidence.startswith("Hardly a CUDA call runs meanwhile: the host does something else. read (1 call) of the")
    assert "covers 98.3 % of it" in evidence
    assert "poll" not in evidence
