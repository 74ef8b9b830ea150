from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiling.compare import NoSuchRange, Side, compare, select
from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace
from tests.profiling.captures import PID, THREAD, Export
from tests.profiling.conftest import SHARED

Made = Callable[..., Trace]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Import an export made in the test, under a name of its own."""

    def run(export: Export, name: str = "a") -> Trace:
        import_profile(export.write(tmp_path / f"{name}.sqlite"), tmp_path / name)
        return Trace(Store(tmp_path / name))

    return run


def held(a: Trace, b: Trace, range_a: str = "", range_b: str = "") -> dict[str, Any]:
    sides = (Side("A", select(a, range_a), "one", "1"), Side("B", select(b, range_b), "other", "2"))
    return compare(*sides)


def steps(kernels: dict[str, tuple[int, int]], count: int = 3, gpu: str = "NVIDIA H200", word: str = "step") -> Export:
    """``count`` ranges; in each, for every name (calls, ns) kernels one after another."""
    export = Export()
    at, correlation = 100_000, 1
    export.add("TARGET_INFO_GPU", id=0, name=gpu, smCount=132) if gpu else None
    for number in range(count):
        begin = at
        for name, (calls, ns) in kernels.items():
            for _ in range(calls):
                export.launched(name, at + 2000, at + 2000 + ns, correlation)
                at, correlation = at + 2000 + ns, correlation + 1
        export.range(f"{word}_{number}", begin, at)
        at += 10_000
    return export


def test_the_demo_s_steps_have_the_true_ratio_of_their_ranges(demo_trace: Trace) -> None:
    found = held(demo_trace, demo_trace, "chunk=1024", "chunk=32768")
    assert found["ratio"] == pytest.approx((74_858_136 + 63_485_217) / (8_572_734 + 9_398_913), abs=1e-4)
    assert (found["a"]["occurrences"], found["b"]["occurrences"]) == (2, 2)
    assert (found["a"]["kernels"], found["b"]["kernels"]) == (2798, 198)
    assert found["verdict"] == "faster"


def test_the_demo_s_chunked_reads_are_named_as_the_cause(demo_trace: Trace) -> None:
    found = held(demo_trace, demo_trace, "chunk=1024", "chunk=32768")
    assert found["causes"][0]["title"] == "A does in 32 pieces what B does in 1"
    assert "mla_chunk_0 … mla_chunk_31 stand inside mla" in found["causes"][0]["evidence"]
    assert "mla_chunk_0 … mla_chunk_31" in found["conclusion"]
    assert found["causes"][0]["ns"] > 0.9 * (found["a"]["time_ns"] - found["b"]["time_ns"])


def test_turned_around_b_is_slower_and_its_pieces_are_named(demo_trace: Trace) -> None:
    found = held(demo_trace, demo_trace, "chunk=32768", "chunk=1024")
    assert found["verdict"] == "slower"
    assert found["causes"][0]["title"] == "B does in 32 pieces what A does in 1"


def test_the_difference_table_has_new_gone_and_mean(demo_trace: Trace) -> None:
    table = {k["name"]: k for k in held(demo_trace, demo_trace, "chunk=1024", "chunk=32768")["kernels"]}
    assert table["vectorized_elementwise_kernel"]["a"]["calls"] == 1560
    assert table["nvjet_sm90_tst_64x8_64x16_4x2_h_bz_NNT"]["change"] == "gone"
    assert table["nvjet_sm90_tst_256x16_64x6_2x1_v_bz_TNT"]["change"] == "new"
    assert table["nvjet_sm90_tst_256x16_64x6_2x1_v_bz_TNT"]["b"]["mean_ns"] == 13376.0
    assert sum(k["a"]["share"] for k in table.values()) == pytest.approx(1, abs=1e-4)


def test_a_capture_against_itself_is_the_same(demo_trace: Trace) -> None:
    found = held(demo_trace, demo_trace)
    assert (found["verdict"], found["ratio"]) == ("same", 1.0)
    assert {k["change"] for k in found["kernels"]} == {"same"}


@pytest.mark.parametrize(
    ("ns", "verdict"), [(100_900, "same"), (99_000, "same"), (103_000, "slower"), (95_000, "faster")]
)
def test_two_percent_is_noise(ns: int, verdict: str, made: Made) -> None:
    found = held(made(steps({"k": (20, 100_000)})), made(steps({"k": (20, ns)}), "b"), "step", "step")
    assert found["verdict"] == verdict


def test_kernels_are_counted_per_range_whatever_the_number_of_ranges(made: Made) -> None:
    found = held(made(steps({"k": (10, 5000)}, 2)), made(steps({"k": (10, 5000)}, 5), "b"), "step", "step")
    assert found["verdict"] == "same"
    assert found["kernels"][0]["a"]["calls"] == found["kernels"][0]["b"]["calls"] == 10


def test_another_gpu_is_no_ratio(made: Made) -> None:
    found = held(made(steps({"k": (20, 5000)})), made(steps({"k": (20, 9000)}, gpu="NVIDIA A100"), "b"), "step", "step")
    assert (found["verdict"], found["ratio"]) == ("not comparable", None)
    assert found["reasons"] == ["another GPU: NVIDIA H200 in A, NVIDIA A100 in B"]
    assert {k["ratio"] for k in found["kernels"]} == {None}


def test_a_gpu_that_one_side_does_not_name_is_not_taken_for_the_other(made: Made) -> None:
    found = held(made(steps({"k": (20, 5000)})), made(steps({"k": (20, 9000)}, gpu=""), "b"), "step", "step")
    assert "the GPU of B is not recorded" in found["reasons"][0]


def test_an_empty_candidate_is_no_speed_up(made: Made) -> None:
    found = held(made(steps({"k": (20, 5000)})), made(Export().range("step_0", 0, 50).call("cudaFree", 1, 9), "b"))
    assert found["ratio"] is None
    assert "B is empty: no kernel runs in it" in found["conclusion"]


def test_another_workload_is_no_ratio(made: Made) -> None:
    one = made(steps({"gemm": (20, 5000)}, word="decode"))
    found = held(one, made(steps({"conv": (20, 5000)}, word="train"), "b"))
    assert "another workload" in found["reasons"][0]


def test_another_number_of_steps_is_no_ratio(made: Made) -> None:
    found = held(made(steps({"k": (20, 5000)}, 2)), made(steps({"k": (20, 5000)}, 4), "b"))
    assert "another amount of work: A has 2 × “step_#”, B has 4 ×" in found["reasons"][0]


def test_ranges_of_two_processes_keep_their_own_kernels(made: Made) -> None:
    export = Export()
    for rank, length in ((0, 1000), (1, 3000)):
        owner = PID + (rank << 24)
        export.range("step", 10_000, 30_000, globalTid=THREAD + (rank << 24))
        for i in range(3):
            start = 12_000 + 4000 * i
            export.call("cudaLaunchKernel", start - 500, start, i + 1, globalTid=THREAD + (rank << 24))
            export.kernel(f"k{rank}", start, start + length, correlationId=i + 1, globalPid=owner, deviceId=rank)
    chosen = select(made(export), "step")
    assert chosen.occurrences == 2
    assert sorted(chosen.owner.tolist()) == [0, 0, 0, 1, 1, 1]


def test_kernels_of_another_thread_belong_to_the_range_in_whose_time_they_were_launched(made: Made) -> None:
    export = Export().range("step", 10_000, 60_000).launched("forward", 20_000, 25_000, 1)
    export.call("cudaLaunchKernel", 30_000, 31_000, 2, globalTid=THREAD + 1)
    export.kernel("backward", 32_000, 40_000, correlationId=2)
    assert len(select(made(export), "step").kernels) == 2


def test_work_that_ends_after_its_range_counts(made: Made) -> None:
    export = Export().range("step", 10_000, 12_000)
    export.call("cudaLaunchKernel", 10_500, 11_000, 1)
    export.kernel("k", 20_000, 90_000, correlationId=1)
    assert select(made(export), "step").time_ns == 70_000


def test_an_exact_name_is_taken_before_names_that_hold_it(demo_trace: Trace) -> None:
    assert select(demo_trace, "mla").names() == ["mla"]
    assert select(demo_trace, "decode_step#0, decode_step#1").occurrences == 2


def test_a_stretch_of_time_is_a_selection(demo_trace: Trace) -> None:
    assert select(demo_trace, "ns:20649143-159003103").time_ns == 138_353_960


@pytest.mark.parametrize("text", ["zebra", "ns:9-3"])
def test_what_is_not_there_is_said_with_what_there_is(text: str, demo_trace: Trace) -> None:
    with pytest.raises(NoSuchRange, match=r"decode_step|ends? after"):
        select(demo_trace, text)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")
def test_two_profilers_are_not_compared(demo_trace: Trace, tmp_path: Path) -> None:
    import_profile(SHARED / "h200" / "decode_chunk1k.pt.trace.json.gz", tmp_path / "k")
    found = held(demo_trace, Trace(Store(tmp_path / "k")), "decode_step", "decode_step")
    assert "another profiler" in found["reasons"][0]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")
def test_torch_traces_name_the_chunked_reads_too(tmp_path: Path) -> None:
    traces = []
    for name in ("chunk1k", "chunk32k"):
        import_profile(SHARED / "h200" / f"decode_{name}.pt.trace.json.gz", tmp_path / name)
        traces.append(Trace(Store(tmp_path / name)))
    found = held(*traces, "decode_step", "decode_step")
    assert found["ratio"] == pytest.approx(12.3, abs=0.1)
    assert "32 × mla_chunk stand inside mla" in found["conclusion"]
