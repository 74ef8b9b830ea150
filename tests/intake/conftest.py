from __future__ import annotations

import functools
from pathlib import Path

import pytest

from campaigns.harness import evaluator, sandbox
from campaigns.harness.problem import read_folder
from campaigns.harness.problem_check import ProblemReport, check_problem
from campaigns.intake import Draft, convert

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"
CENTRE = HERE.parent / "harness" / "data" / "centre"

needs_sandbox = pytest.mark.skipif(not sandbox.available(), reason="bubblewrap cannot start here")


def example(*paths: str) -> dict[str, str]:
    return {Path(path).name: (EXAMPLES / path).read_text() for path in paths}


GPU_MODE = ("gpu_mode/reference.py", "gpu_mode/task.yml", "gpu_mode/submission.py")
FLASHINFER = (
    "flashinfer_bench/scaled_gelu.json",
    "flashinfer_bench/scaled_gelu.jsonl",
    "flashinfer_bench/solution.json",
)


@functools.cache
def draft(*paths: str) -> Draft:
    """Made once in these tests: each costs a sandbox or two."""
    return convert(example(*paths))


def centre_with(**texts: str) -> dict[str, str]:
    """The small problem of the harness's tests, with a file in place of its own: ``inputs=``, ``reference=``, ``toml=``."""
    names = {"inputs": "inputs.py", "reference": "reference.py", "toml": "problem.toml", "start": "start/kernel.cpp"}
    return {**read_folder(CENTRE), **{names[key]: text for key, text in texts.items()}}


def rules_of(files: dict[str, str], kernels: bool = False) -> list[str]:
    return [reason.rule for reason in checked(files, kernels).reasons]


def checked(files: dict[str, str], kernels: bool = False) -> ProblemReport:
    return check_problem(files, kernels=kernels)


@pytest.fixture(scope="session", autouse=True)
def _cold_end():
    yield
    evaluator.close()
