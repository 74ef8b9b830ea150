"""What crosses the border into an evaluation: plain data only, encodable as JSON."""

from __future__ import annotations

import msgspec

REQUEST_SCHEMA = 1


class CandidateSource(msgspec.Struct, frozen=True, kw_only=True):
    """Source files of one candidate.

    ``files`` maps a relative POSIX path to its text. The entry file is ``kernel.cpp`` (backend ``cpp``), ``kernel.cu``
    (``cuda``) or ``kernel.py`` (``torch``, ``triton``, ``cutedsl``); a single file under any other name is the entry.
    """

    backend: str
    files: dict[str, str]


class EvaluationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate to judge.

    ``problem_files`` is the whole problem folder as text (``problem.toml``, ``reference.py``, ``inputs.py``,
    ``baselines/…``), so that a GPU host needs no copy of its own. ``incumbent`` is the best candidate so far, or the
    start kernel at the first attempt. ``mode`` is ``full`` (visible and hidden workloads, timing, confirmation),
    ``visible`` (visible workloads only) or ``check`` (build and correctness, no timing).
    """

    problem_name: str
    problem_files: dict[str, str]
    candidate: CandidateSource
    incumbent: CandidateSource | None = None
    baseline: str = "eager"
    mode: str = "full"
    time_limit_s: float = 300.0
    seed: int | None = None
    """Only for tests that must repeat a run; ``None`` draws a secret seed from the operating system."""
    dismissed: list[str] = []
    """Rules whose blocking findings a person has dismissed for this candidate: they are noted and block no more."""
    device: str = ""
    """``cpu`` or ``cuda``; empty lets the evaluator choose: a GPU where backend, problem and host have one."""
    schema: int = REQUEST_SCHEMA
