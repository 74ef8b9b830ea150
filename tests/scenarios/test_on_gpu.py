"""The measurement on a GPU, rehearsed on a CPU: the same processes, messages and checks; Triton is interpreted."""

from __future__ import annotations

import contextlib
import time

import pytest

from campaigns.harness.gpu import devices, peaks
from campaigns.harness.problem import read_folder
from campaigns.scenarios import catalogue, on_gpu
from tests.harness.gpu.conftest import REHEARSAL, needs_sandbox

from . import kernels


@pytest.mark.slow
@needs_sandbox
def test_a_stack_of_triton_kernels_is_measured_and_a_wrong_one_left_out(monkeypatch):
    @contextlib.contextmanager
    def reserved(should_stop, limit_s):
        yield REHEARSAL

    monkeypatch.setattr(devices, "reserved", reserved)
    monkeypatch.setattr(peaks, "of", lambda gpu, spares: {})
    monkeypatch.setattr("campaigns.harness.gpu.spares.kept", lambda: 0)
    from campaigns import catalog

    files = read_folder(catalog.find("rmsnorm"))
    right = kernels.kernel("rmsnorm", {"kernel.py": files["start/triton_kernel.py"]}, "triton")
    wrong = kernels.kernel("lm_head", {"kernel.py": "def run(x, head, logits):\n    logits.zero_()\n"}, "torch")
    told = kernels.with_axes(kernels.request(right, wrong, rounds=6, draws=1), "steps = 1, batch = 1, layers = 1")
    scenario = catalogue.load(told.files, told.scenario)
    report = on_gpu.measure_on_gpu(told, scenario, lambda *said: None, lambda: False, time.monotonic())
    assert [(stage.operator, stage.parity.passed) for stage in report.stages] == [("rmsnorm", True)]
    assert [left.operator for left in report.left_out] == ["lm_head"]
    assert report.base_us > 0
    assert report.host.kind == REHEARSAL.name
