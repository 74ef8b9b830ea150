from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.harness import evaluator, sandbox
from campaigns.harness.candidate import load_candidate
from campaigns.harness.problem import read_folder
from campaigns.harness.report import Report
from campaigns.harness.request import CandidateSource, EvaluationRequest

HERE = Path(__file__).parent
CANDIDATES = HERE / "candidates"
CENTRE = HERE / "data" / "centre"

needs_sandbox = pytest.mark.skipif(not sandbox.available(), reason="bubblewrap cannot start here")


def request_for(
    source: CandidateSource, mode: str = "full", incumbent: CandidateSource | None = None, **changes: object
) -> EvaluationRequest:
    files = read_folder(CENTRE)
    return EvaluationRequest(
        problem_name="centre", problem_files=files, candidate=source, incumbent=incumbent, mode=mode, **changes
    )


def named(name: str) -> CandidateSource:
    return load_candidate(CANDIDATES / name)


def check(name: str) -> Report:
    """One of the files in candidates/, for correctness only."""
    return evaluator.evaluate(request_for(named(name), "check"))


@pytest.fixture(scope="session", autouse=True)
def _cold_end() -> Iterator[None]:
    yield
    evaluator.close()
