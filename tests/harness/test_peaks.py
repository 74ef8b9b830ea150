"""The ceilings of one core: measured by a small program of ours, kept by the host's identity, and never too low a ceiling."""

from __future__ import annotations

import pytest

from campaigns.harness import cpu_peaks, kept_peaks
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.stages.floor import bandwidth_for, bound_of, floor_of, judged

from .conftest import HERE, needs_sandbox

BY_SIZE = {"copy_at_16384_bytes_per_s": 9e10, "read_at_1048576_bytes_per_s": 3e10, "copy_at_67108864_bytes_per_s": 5e9}


@pytest.mark.parametrize(("nbytes", "expected"), [(1e3, 9e10), (1e5, 9e10), (1 << 24, 3e10), (1 << 30, 3e10)], ids=str)
def test_what_may_lie_in_a_cache_is_given_the_caches_bandwidth(nbytes: float, expected: float):
    assert bandwidth_for(nbytes, BY_SIZE) == expected


def test_a_gpus_bandwidth_is_one_figure():
    assert bandwidth_for(1e9, {"copy_bytes_per_s": 4.2e12, "read_bytes_per_s": 4.3e12}) == 4.3e12


def test_only_what_no_gpu_can_do_is_blocked():
    """The first row was seen on an H200: an honest kernel read faster than our own probe did."""
    problem = load_problem(read_folder(HERE.parents[1] / "campaigns" / "problems" / "lm_head"))
    workload = next(w for w in problem.workloads if w.name == "b1_h4096_v32768")
    peaks = {"read_bytes_per_s": 4.314e12, "bfloat16_flop_per_s": 8.03e14, "memory_clock_bytes_per_s": 4.917e12}
    floor_us, bound_us = floor_of(problem, workload, peaks), bound_of(problem, workload, peaks)
    assert (floor_us, bound_us) == (pytest.approx(62.24, rel=1e-3), pytest.approx(54.61, rel=1e-3))

    def severity(time_us: float, gpu: bool = True) -> str | None:
        found = judged("w", time_us, floor_us or 0.0, bound_us or 0.0, gpu)
        return found.severity if found else None

    assert [severity(t) for t in (61.31, 54.0, 63.0)] == ["note", "block", None]
    assert bound_of(problem, workload, {"read_bytes_per_s": 4.314e12}) == pytest.approx(62.24 / 1.15, rel=1e-3)


@needs_sandbox
@pytest.mark.slow
def test_a_core_is_measured_once_and_again_when_the_host_is_another(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path))
    first = cpu_peaks.of()

    assert first["float32_flop_per_s"] > 1e8
    assert first["copy_at_16384_bytes_per_s"] > 1e8
    assert cpu_peaks.of() == first == kept_peaks.kept(cpu_peaks.identity())
    monkeypatch.setattr(cpu_peaks, "host_name", lambda: "another")
    assert kept_peaks.kept(cpu_peaks.identity()) is None


def test_a_folder_that_cannot_be_written_costs_only_the_memory_of_the_peaks(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "file"))
    kept_peaks.keep("a host", {"copy_bytes_per_s": 1e9})

    assert kept_peaks.kept("a host") is None
