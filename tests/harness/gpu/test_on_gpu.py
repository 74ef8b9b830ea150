"""On a real GPU. Also by hand on a host without Django: pytest --confcutdir=tests/harness/gpu tests/harness/gpu"""

from __future__ import annotations

import pytest

from campaigns.harness import evaluator
from campaigns.harness.candidate import load_candidate
from campaigns.harness.problem import read_folder
from campaigns.harness.report import Report
from campaigns.harness.request import EvaluationRequest

from .conftest import HERE, SCALE, needs_gpu, needs_sandbox

pytestmark = [pytest.mark.gpu, needs_gpu, needs_sandbox]


def check(name: str, backend: str | None = None) -> Report:
    candidate = load_candidate(HERE / "candidates" / name, backend)
    files = read_folder(SCALE)
    return evaluator.evaluate(
        EvaluationRequest(problem_name="scale", problem_files=files, candidate=candidate, mode="check", device="cuda")
    )


def test_an_honest_kernel_passes_after_one_that_wrote_where_nothing_is():
    assert check("illegal.cu").outcome == "launch_failed"
    assert check("honest.cu").outcome == "measured"


def test_memory_that_is_not_there_is_named():
    assert check("memory.py", "torch").outcome == "out_of_memory"


def test_waiting_for_the_device_fails_the_cuda_graph():
    found = check("synchronizes.py", "torch")
    assert found.outcome == "launch_failed"
    assert "CUDA graph" in found.summary


def test_a_librarys_kernel_behind_a_fallback_is_flagged():
    assert "library-kernels" in {f.rule for f in check("hidden_fallback_triton.py").findings}


def test_a_changed_input_is_incorrect():
    found = check("changes_input_triton.py")
    assert found.outcome == "incorrect"
    assert "changed its inputs" in found.summary
