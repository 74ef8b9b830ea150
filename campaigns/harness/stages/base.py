"""The interface of a stage, and what stages share about one evaluation."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .. import backends, sandbox
from ..bench import Bench
from ..errors import CandidateFailure, Infrastructure, Stopped
from ..gpu.bench import GpuBench
from ..gpu.devices import Gpu
from ..gpu.engaged import Engaged
from ..gpu.runner import GpuRunner
from ..gpu.warming import Warming
from ..problem import Problem, Workload
from ..report import Confirmation, Finding, RangeWin, Ratio, WorkloadResult
from ..request import CandidateSource, EvaluationRequest
from ..runner import Runner

CANDIDATE_LIMITS = sandbox.Limits(memory_bytes=2048 * sandbox.MIB)


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
    range: RangeWin | None = None
    probed: dict[str, Workload] = field(default_factory=dict)
    """Workloads that were measured to find the ends of that range."""
    build_log: str = ""
    outputs: list[str] = field(default_factory=list)
    random: Any = field(default_factory=secrets.SystemRandom)
    engagement: list[dict[str, Any]] = field(default_factory=list)
    peaks: dict[str, float] = field(default_factory=dict)
    untimed: str = ""
    """Why nothing is timed here, where that is so."""
    patience: float = 1.0
    """By how much calls may take longer than usual: an interpreter is slow."""
    gpu: Gpu | None = None
    gpu_bench: GpuBench | None = None
    checkers: dict[str, GpuRunner] = field(default_factory=dict)
    """By workload, the candidate's process in which it was checked."""
    gpu_runners: list[GpuRunner] = field(default_factory=list)
    warming: tuple[dict[str, GpuRunner], Warming] | None = None
    engaged: Engaged | None = None

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
        return max(0.1, min(wanted_s * self.patience, self.deadline - time.monotonic()))

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
        runner = Runner.start(who, self.problem, source, built, CANDIDATE_LIMITS, should_stop=self.should_stop)
        self.runners.append(runner)
        return runner

    def start_candidate(self) -> Runner:
        assert self.built is not None
        return self.start_runner("candidate", self.request.candidate, self.built)

    def close_runner(self, runner: Runner) -> None:
        runner.close()
        if runner in self.runners:
            self.runners.remove(runner)
            if runner.who == "candidate":
                self.outputs.append(runner.channel.output.text())

    @property
    def on_gpu(self) -> GpuBench:
        assert self.gpu_bench is not None
        return self.gpu_bench

    def start_gpu(
        self, who: str, source: CandidateSource | None = None, built: backends.Built | None = None, mine: bool = True
    ) -> GpuRunner:
        """Hand code (the candidate's, unless said otherwise) to a process that waits on the GPU."""
        source, built = source or self.request.candidate, built or self.built
        assert built is not None
        runner = GpuRunner.start(who, self.on_gpu.spares, self.problem, source, built, self.should_stop, mine)
        self.gpu_runners.append(runner)
        return runner

    def start_engaged(self) -> None:
        """Start the processes in which it is seen what really runs."""
        chosen = [w for w in self.workloads if w.timed] or self.workloads[:1]
        assert self.built is not None
        source = self.request.candidate
        self.engaged = Engaged(self.on_gpu, self.start_gpu, self.close_gpu, source, self.built, chosen)

    def start_warming(self, workloads: list[Workload] | None = None) -> None:
        """Start the processes of a timing session: they load and compile while other things are looked at."""
        timed = [w for w in self.workloads if w.timed] if workloads is None else workloads
        if self.request.mode == "check" or not timed:
            return
        runners: dict[str, GpuRunner] = {}
        if self.incumbent is not None and self.incumbent_built is not None:
            for who in ("incumbent", "incumbent again"):
                runners[who] = self.start_gpu(who, self.incumbent, self.incumbent_built, mine=False)
        runners["candidate"] = self.start_gpu("candidate")
        self.warming = runners, Warming(self.on_gpu, list(runners.values()), timed)

    def warmed(self) -> dict[str, GpuRunner]:
        """The processes that ``start_warming`` started, once they are ready."""
        if self.warming is None:
            raise Infrastructure("a timing session was asked for before its processes were started")
        (runners, warming), self.warming = self.warming, None
        warming.wait()
        return runners

    def close_gpu(self, runner: GpuRunner) -> None:
        if runner not in self.gpu_runners:
            return
        self.gpu_runners.remove(runner)
        area = runner.area
        runner.close()
        if self.gpu_bench is not None and area is not None:
            self.gpu_bench.forget(area)
        if runner.who == "candidate":
            self.outputs.append(runner.channel.output.text())
