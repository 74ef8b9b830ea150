from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest

from campaigns.harness import cores, kept_peaks
from campaigns.harness.backends import get
from campaigns.harness.errors import CandidateError, CandidateFailure
from campaigns.harness.gpu import channel, devices, kernels, lane, peaks, precision, work
from campaigns.harness.gpu.engaged import unpacked
from campaigns.harness.inside import gpu_profile, packages
from campaigns.harness.inside.link import MAX_MESSAGE_BYTES
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.request import CandidateSource

from .conftest import REHEARSAL, SCALE

PROBLEM = load_problem(read_folder(SCALE))
START = PROBLEM.files["start/triton_kernel.py"]
L2 = 60 << 20


def test_slots_are_as_many_as_leave_the_cache_cold():
    count, cold = lane.slot_count(16 << 20, L2, 140 << 30)
    assert cold
    assert (count - 1) * (16 << 20) >= 2 * L2


def test_a_tiny_workload_is_called_warm():
    assert lane.slot_count(1 << 12, L2, 140 << 30) == (lane.MAX_SLOTS, False)


def test_rings_of_all_processes_together_fit_the_gpu():
    memory, weights, sharers = 140 << 30, 1107 << 20, 4 * 6
    count, cold = lane.slot_count(weights, L2, memory, sharers=sharers)
    assert cold
    assert (count + 1) * weights * sharers < 0.6 * memory


def test_few_workloads_get_longer_blocks_than_many():
    assert lane.calls_in_block(70_000, 3) == math.ceil(8_000_000 / 70_000)
    assert lane.calls_in_block(70_000, 12) == math.ceil(2_000_000 / 70_000)


def test_the_evaluator_does_not_sleep_before_the_longest_block_ends():
    assert channel.GpuChannel.block_spin_ns >= 1.5 * 2 * lane.MAX_BLOCK_NS


def test_a_longer_block_that_took_no_longer_is_no_time():
    assert math.isnan(lane.slope(100.0, 100.0, 4))


def test_pieces_of_a_large_output_hold_both_its_ends():
    workload = next(w for w in PROBLEM.workloads if w.name == "us70")
    found = work.pieces(PROBLEM, workload, whole=False, rng=random.Random(1))
    assert found[0].first == 0
    assert found[-1].first + found[-1].count == 32768 * 2048
    assert sum(p.count for p in found) < 32768 * 2048 / 10


def test_a_small_output_is_looked_at_whole():
    workload = next(w for w in PROBLEM.workloads if w.name == "small")
    assert [p.count for p in work.pieces(PROBLEM, workload, False, random.Random(1))] == [17 * 33]


def test_kernels_are_known_by_the_names_in_the_source():
    source = CandidateSource(backend="triton", files={"kernel.py": START})
    assert kernels.own_names(source) == {"scale_kernel"}
    cuda = CandidateSource(
        backend="cuda",
        files={"kernel.cu": "__global__ __launch_bounds__(256) void fast(float* x) {}"},
    )
    assert kernels.own_names(cuda) == {"fast"}


@pytest.mark.parametrize(
    ("kernel", "family"),
    [
        ("scale_kernel", "own"),
        ("void scale_kernel<float>(float const*)", "own"),
        ("not_scale_kernels", "unknown"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "cuBLAS"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", "torch"),
        ("triton_poi_fused_mul_0", "torch.compile"),
        ("Memset (Device)", "transfer"),
    ],
)
def test_a_kernel_is_told_from_a_librarys(kernel: str, family: str):
    assert kernels.family(kernel, {"scale_kernel"}) == family


def test_a_profile_of_many_kernels_with_long_names_is_one_message_and_loses_no_time():
    def kernel(i: int) -> dict[str, object]:
        return {"kernel": f"{i:0300}", "calls": 2, "total_us": 1.0 + i, "streams": [7, i % 3]}

    rows = [{f"{i:0300}": kernel(i) for i in range(200)} for _ in range(15)]
    answer = gpu_profile.packed(rows)

    assert len(json.dumps(answer)) < MAX_MESSAGE_BYTES - 1000
    found = unpacked([f"w/{i}" for i in range(15)], json.loads(json.dumps(answer)))
    assert [call["slot"] for call in found] == [f"w/{i}" for i in range(15)]
    assert {sum(k["total_us"] for k in call["kernels"]) for call in found} == {sum(1.0 + i for i in range(200))}
    (rest,) = [kernel for kernel in found[0]["kernels"] if "further" in kernel["kernel"]]
    assert (rest["calls"], rest["streams"]) == (2 * 104, [0, 1, 2, 7])
    with pytest.raises(CandidateFailure, match="answered"):
        unpacked(["a"], {"names": [], "calls": [[[3, 1, 1.0, []]]]})


def event(name: str, start_ns: int, number: int, device: str = "DeviceType.CPU") -> SimpleNamespace:
    values = {
        "name": name, "start_ns": start_ns, "duration_ns": 9_000, "correlation_id": number, "device_type": device,
        "device_resource_id": 7,
    }  # fmt: skip
    return SimpleNamespace(**{key: lambda value=value: value for key, value in values.items()})


@pytest.mark.parametrize("late_ns", [-30_000_000, -2_500_000, 0, 2_500_000, 30_000_000])
def test_a_kernel_belongs_to_its_call_though_the_devices_clock_disagrees(late_ns: int):
    events = [event("cudaMalloc", -8_000_000, 5)]
    for call in range(3):
        begin = call * 5_000_000  # the pause, and 1 ms of the call
        events += [
            event(f"{gpu_profile.MARK}{call}", begin, 0),
            event("aten::mul", begin + 10_000, 1),  # numbered on its own
            event("cuLaunchKernelEx", begin + 20_000, 10 * call + 11),
            event("cudaDeviceSynchronize", begin + 30_000, 10 * call + 12),
            event(f"kernel {call}", begin + 25_000 + late_ns, 10 * call + 11, "DeviceType.CUDA"),
        ]
    assert [list(row) for row in gpu_profile.by_call(events, 3)] == [["kernel 0"], ["kernel 1"], ["kernel 2"]]


def test_each_gpu_has_cores_of_its_own_and_whoever_starts_there_keeps_to_them(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(cores.os, "sched_getaffinity", lambda pid: set(range(4, 38)))
        shares = [cores.share(number, 3) for number in range(3)]
        assert set.union(*shares) == set(range(4, 38))
        assert sorted(map(len, shares)) == [11, 11, 12]
        assert cores.share(1, 16) == set(range(4, 38))  # two cores each: too few to divide
    before = os.sched_getaffinity(0)
    with cores.kept_to({min(before)}):
        child = subprocess.run(
            [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], stdout=subprocess.PIPE
        )
        assert (cores.count(), child.stdout.decode().strip()) == (1, str({min(before)}))
    assert os.sched_getaffinity(0) == before


def test_an_emptied_kernel_still_parses_and_does_nothing():
    emptied = kernels.without_bodies(START)
    assert "tl.store" not in emptied
    assert "scale_kernel[(programs,)]" in emptied
    compile(emptied, "kernel.py", "exec")


@pytest.mark.parametrize(
    ("dtype", "error", "what"),
    [
        ("float32", 3e-4, "TF32 or float16"),
        ("float32", 1e-6, None),
        ("float32", 2e-3, "bfloat16"),
        ("bfloat16", 2e-3, None),
        ("bfloat16", 3e-2, "float8"),
    ],
)
def test_the_size_of_an_error_names_the_arithmetic(dtype: str, error: float, what: str | None):
    assert precision.name(dtype, error) == what


def test_peaks_are_kept_for_the_same_gpu_driver_and_torch_only(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path))
    this, other = (peaks.identity(REHEARSAL, torch) for torch in ("2.11", "2.12"))
    assert kept_peaks.kept(this) is None
    kept_peaks.keep(this, {"copy_bytes_per_s": 4.2e12})
    assert kept_peaks.kept(this) == {"copy_bytes_per_s": 4.2e12}
    assert kept_peaks.kept(other) is None


def test_a_backend_that_is_not_installed_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CandidateError, match="cutedsl"):
        get("cutedsl")


@pytest.mark.skipif(bool(devices.visible()), reason="there is a GPU here")
def test_cuda_without_a_gpu_says_so():
    with pytest.raises(CandidateError, match="no NVIDIA GPU"):
        get("cuda")


def test_cutlass_is_found_by_its_pth_file_and_no_other_pth_file_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    (tmp_path / "nvidia_cutlass_dsl_packages.pth").write_text(
        f"import sys; sys.path.append({str(tmp_path / 'dsl')!r})\n"
    )
    (tmp_path / "other.pth").write_text("import sys; sys.path.append('/other')\n")
    packages.add([str(tmp_path), str(tmp_path / "is not there")])
    assert sys.path == [str(tmp_path), str(tmp_path / "is not there"), str(tmp_path / "dsl")]
