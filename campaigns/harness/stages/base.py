"""The interface of a stage, and what stages share about one evaluation."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .. import backends, sandbox
from ..bench import Bench
from ..errors import CandidateFailure, Stopped
from ..problem import Problem, Workload
from ..report import Confirmation, Finding, Ratio, WorkloadResult
from ..request import CandidateSource, EvaluationRequest
from ..runner import Runner

CANDIDATE_LIMITS = sandbox.Limits()


class Skip(Exception):
    """The stage does not apply; the message says why."""


class Stage(Protocol):
    """One step of the order in ``docs/harness.md``.

    ``run`` SHALL return its evidence and a sentence, and write what it measured into the evaluation. It SHALL raise
    ``CandidateFailure`` when the candidate fails it, ``Skip`` when it does not apply and ``Infrastructure`` when it
    could not be carried out. It MAY add findings.
    """

    name: str

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]: ...


@dataclass
class Evaluation:
    """One evaluation as it goes. ``results`` hold what is known of each workload so far."""

    request: EvaluationRequest
    problem: Problem
    device: str
    workloads: list[Workload]
    incumbent: CandidateSource | None
    progress: Callable[[str, str], None]
    should_stop: Callable[[], bool]
    deadline: float
    bench: Bench | None = None
    core: int = 0
    built: backends.Built | None = None
    incumbent_built: backends.Built | None = None
    candidate_runner: Runner | None = None
    results: dict[str, WorkloadResult] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    runners: list[Runner] = field(default_factory=list)
    speedup: Ratio | None = None
    over_incumbent: Ratio | None = None
    noise: Ratio | None = None
    confirmation: Confirmation | None = None
    build_log: str = ""
    outputs: list[str] = field(default_factory=list)
    random: Any = field(default_factory=secrets.SystemRandom)

    def checkpoint(self) -> None:
        """Called between blocks: ends the evaluation when a person stopped it or its time is over."""
        if self.should_stop():
            raise Stopped
        if time.monotonic() > self.deadline:
            limit_s = self.request.time_limit_s
            raise CandidateFailure("timed_out", f"the whole evaluation took more than its limit of {limit_s:.0f} s")

    def update(self, name: str, **changes: Any) -> None:
        result = self.results[name]
        values = {f: getattr(result, f) for f in result.__struct_fields__}
        self.results[name] = WorkloadResult(**{**values, **changes})

    def block_limit_s(self, wanted_s: float) -> float:
        return max(0.1, min(wanted_s, self.deadline - time.monotonic()))

    def add_finding(self, finding: Finding) -> None:
        """Add it once. One that a person dismissed is kept as a note."""
        if finding.severity == "block" and finding.rule in self.request.dismissed:
            data = {**finding.data, "dismissed": True}
            finding = Finding(
                rule=finding.rule,
                severity="note",
                evidence=finding.evidence,
                path=finding.path,
                line=finding.line,
                data=data,
            )
        if not any((f.rule, f.path, f.line) == (finding.rule, finding.path, finding.line) for f in self.findings):
            self.findings.append(finding)

    def start_runner(self, who: str, source: CandidateSource, built: backends.Built) -> Runner:
        """A fresh process; it is ended with the evaluation at the latest."""
        runner = Runner.start(
            who, self.problem, source, built, self.core, CANDIDATE_LIMITS, should_stop=self.should_stop
        )
        self.runners.append(runner)
        return runner

    def start_candidate(self) -> Runner:
        assert self.built is not None
        return self.start_runner("candidate", self.request.candidate, self.built)

    def check_threads(self, runner: Runner) -> None:
        """Blocks a candidate that runs in more than one thread or process."""
        extra, processes = runner.extra_threads, runner.max_processes - 1
        if extra <= 0 and processes <= 0:
            return
        what = f"{processes} more processes" if processes else f"{extra} more threads"
        self.add_finding(
            Finding(
                rule="threads",
                severity="block",
                evidence=f"the candidate runs in {what}; one core and one thread are timed",
                data={"threads": runner.max_threads, "processes": runner.max_processes},
            )
        )
        if "threads" not in self.request.dismissed:
            raise CandidateFailure("flagged", f"it runs in {what}: one core and one thread are timed")

    def close_runner(self, runner: Runner) -> None:
        runner.close()
        if runner in self.runners:
            self.runners.remove(runner)
            if runner.who == "candidate":
                self.outputs.append(runner.channel.output.text())
