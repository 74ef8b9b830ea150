"""Where there is no GPU the whole conversation is rehearsed on a CPU: the same processes, messages, checks and rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.harness import evaluator, sandbox
from campaigns.harness.gpu import devices, peaks
from campaigns.harness.problem import read_folder
from campaigns.harness.report import Report
from campaigns.harness.request import CandidateSource, EvaluationRequest

HERE = Path(__file__).parent
SCALE = HERE / "data" / "scale"
REHEARSAL = devices.Gpu(0, "rehearsal on a CPU", "none", "none", (0, 0), 1 << 30, device="cpu")

needs_sandbox = pytest.mark.skipif(not sandbox.available(), reason="bubblewrap cannot start here")
needs_gpu = pytest.mark.skipif(not devices.visible(), reason="no NVIDIA GPU is visible here")


def small(files: dict[str, str]) -> dict[str, str]:
    """The problem with workloads that a CPU gets done."""
    text = files["problem.toml"]
    for rows in ("rows = 2048", "rows = 4096", "rows = 32768"):
        text = text.replace(rows, "rows = 48")
    return {**files, "problem.toml": text.replace("width = 2048", "width = 80").replace('dtype = "bfloat16"\n', "")}


def request_for(
    text: str, backend: str = "torch", mode: str = "full", start: str = "", **changes: object
) -> EvaluationRequest:
    if start:
        changes["incumbent"] = CandidateSource(backend=backend, files={"kernel.py": start})
    return EvaluationRequest(
        problem_name="scale",
        problem_files=small(read_folder(SCALE)),
        candidate=CandidateSource(backend=backend, files={"kernel.py": text}),
        mode=mode,
        device="cuda",
        **changes,
    )


def rehearse(text: str, backend: str = "torch", mode: str = "check", **changes: object) -> Report:
    return evaluator.evaluate(request_for(text, backend, mode, **changes))


@pytest.fixture
def rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were a GPU: its work is done on the CPU, and nothing is captured or profiled."""

    @contextlib.contextmanager
    def reserved(should_stop: object, limit_s: float) -> Iterator[devices.Gpu]:
        yield REHEARSAL

    monkeypatch.setattr(devices, "reserved", reserved)
    monkeypatch.setattr(peaks, "of", lambda gpu, spares: {})
    monkeypatch.setattr("campaigns.harness.gpu.spares.kept", lambda: 0)


@pytest.fixture(scope="session", autouse=True)
def _end() -> Iterator[None]:
    yield
    evaluator.close()
