"""The ceilings of one core: measured by a small program of ours, kept by the host's identity, and never too low a ceiling."""

from __future__ import annotations

import pytest

from campaigns.harness import cpu_peaks, kept_peaks
from campaigns.harness.stages.floor import bandwidth_for

from .conftest import needs_sandbox

BY_SIZE = {"copy_at_16384_bytes_per_s": 9e10, "read_at_1048576_bytes_per_s": 3e10, "copy_at_67108864_bytes_per_s": 5e9}


@pytest.mark.parametrize(("nbytes", "expected"), [(1e3, 9e10), (1e5, 9e10), (1 << 24, 3e10), (1 << 30, 3e10)], ids=str)
def test_what_may_lie_in_a_cache_is_given_the_caches_bandwidth(nbytes: float, expected: float):
    assert bandwidth_for(nbytes, BY_SIZE) == expected


def test_a_gpus_bandwidth_is_one_figure():
    assert bandwidth_for(1e9, {"copy_bytes_per_s": 4.2e12, "read_bytes_per_s": 4.3e12}) == 4.3e12


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
