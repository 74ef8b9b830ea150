"""``evaluate``: one candidate through all stages. The only entry point; it raises nothing but ``Stopped``."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import HARNESS_VERSION, backends, candidate, cpu_peaks, place
from .bench import Bench
from .endings import signal_words
from .errors import CandidateError, CandidateFailure, Infrastructure, ProblemError, Stopped
from .gpu import devices, peaks
from .gpu.bench import GpuBench, close_spares
from .hosts import this_host
from .problem import Problem, files_sha256, load_problem
from .report import Finding, Outcome, Report, StageResult, Status, WorkloadResult
from .request import CandidateSource, EvaluationRequest
from .stages import Evaluation, Skip, Stage, in_order

log = logging.getLogger(__name__)
Progress = Callable[[str, str], None]
_benches: dict[tuple[str, str, str], Bench | GpuBench] = {}
_last: tuple[str, float] | None = None
"""The sha256 of the problem that was evaluated last in this process, and when that ended."""
FIRST_ON_BENCH = "correctness"
_lock = threading.Lock()
"""One evaluation at a time in a process: the warm processes answer one question at a time."""


def evaluate(
    request: EvaluationRequest,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Report:
    """Judge one candidate's merits and return the evidence.

    ``progress(stage, detail)`` is called as it goes. ``should_stop`` is asked many times a second: once it says True,
    everything is killed and ``errors.Stopped`` is raised. All else that goes wrong is in the report.
    """
    began, tell, stop = time.monotonic(), progress or (lambda stage, detail: None), should_stop or (lambda: False)
    with _lock:
        report = _evaluate(request, tell, stop, began)
        if killed(report):
            log.warning("%s: it may be somebody else who killed it; once more", report.summary)
            report = _evaluate(request, tell, stop, began)
        return report


def since_last(problem_files: Mapping[str, str]) -> tuple[float, bool]:
    """Seconds since this process evaluated anything, and whether it was that problem, whose processes are then warm."""
    if _last is None:
        return math.inf, False
    sha256, ended = _last
    return time.monotonic() - ended, sha256 == files_sha256(problem_files)


def killed(report: Report) -> bool:
    """Whether the candidate ended by a SIGKILL. A host that lacks memory kills so, and so does whoever tidies up there: it is
    the candidate's doing where it ends so twice."""
    return report.outcome == "launch_failed" and report.summary.endswith(signal_words(signal.SIGKILL))


def _evaluate(request: EvaluationRequest, progress: Progress, should_stop: Callable[[], bool], began: float) -> Report:
    global _last
    problem: Problem | None = None
    stages: list[StageResult] = []
    evaluation: Evaluation | None = None
    outcome: Outcome
    try:
        problem = load_problem(request.problem_files)
        evaluation = _prepare(request, problem, progress, should_stop)
        with _place(evaluation), _closing(evaluation):
            evaluation.deadline = time.monotonic() + request.time_limit_s
            _run_stages(evaluation, in_order(evaluation), stages)
        outcome, summary = "measured", _summary(evaluation, stages)
    except CandidateFailure as failure:
        outcome, summary = failure.outcome, failure.message
        if evaluation is not None:
            _explain(evaluation, failure)
    except CandidateError as error:
        outcome, summary = "build_failed", str(error)
    except ProblemError as error:
        outcome, summary = "infrastructure", f"the problem is wrong: {error}"
    except Infrastructure as error:
        log.warning("no measurement: %s", error)
        outcome, summary = "infrastructure", str(error)
        _drop_benches()
    except Stopped:
        raise
    except Exception as error:
        # A full disk, a fault of ours: said in the report, since else it would look like a lost worker.
        log.exception("the harness itself failed")
        outcome, summary = "infrastructure", f"the harness itself failed: {type(error).__name__}: {error}"
        _drop_benches()
    finally:
        _last = (files_sha256(request.problem_files), time.monotonic())
    return _report(request, problem, evaluation, stages, outcome, summary, time.monotonic() - began)


@contextlib.contextmanager
def on_a_warm_bench(request: EvaluationRequest, should_stop: Callable[[], bool]) -> Iterator[Evaluation]:
    """An evaluation without stages, for whoever wants something else of a candidate that was judged. One at a time.

    Raises what ``evaluate`` turns into outcomes.
    """
    with _lock:
        evaluation = _prepare(request, load_problem(request.problem_files), lambda stage, detail: None, should_stop)
        with _place(evaluation), _closing(evaluation):
            evaluation.deadline = time.monotonic() + request.time_limit_s
            _warm_up(evaluation)
            yield evaluation


def _explain(evaluation: Evaluation, failure: CandidateFailure) -> None:
    """Keep a failed build's log; and have a finding for whatever ended it as flagged."""
    evaluation.build_log = failure.log or evaluation.build_log
    if failure.outcome == "flagged" and not any(f.severity == "block" for f in evaluation.findings):
        evaluation.findings.append(Finding(rule=failure.rule, severity="block", evidence=failure.message))


def _prepare(
    request: EvaluationRequest, problem: Problem, progress: Progress, should_stop: Callable[[], bool]
) -> Evaluation:
    backend = backends.get(request.candidate.backend)
    candidate.entry_path(request.candidate)
    device = place.device_for(request, backend, problem)
    if request.mode not in ("full", "visible", "check"):
        raise Infrastructure(f"mode {request.mode!r} is none of full, visible, check")
    if request.baseline not in problem.baselines:
        raise ProblemError(f"no baseline {request.baseline!r}: there are {', '.join(problem.baselines)}")
    workloads = [w for w in problem.workloads_on(device) if request.mode != "visible" or not w.hidden]
    untimed = place.untimed(backend, device)
    if untimed:
        workloads = place.small_ones(problem, workloads)
    if not workloads:
        raise ProblemError(f"no workload for device {device}, on which the {backend.name} backend runs")
    evaluation = Evaluation(
        request=request,
        problem=problem,
        device=device,
        workloads=workloads,
        incumbent=request.incumbent or first_incumbent(problem, request.candidate.backend, device),
        progress=progress,
        should_stop=should_stop,
        deadline=time.monotonic() + request.time_limit_s,
        untimed=untimed,
        patience=place.PATIENCE if untimed else 1.0,
    )
    for w in workloads:
        evaluation.results[w.name] = WorkloadResult(name=w.name, hidden=w.hidden, axes=w.axes)
    return evaluation


def start_kernel(problem: Problem, backend: str) -> CandidateSource | None:
    """The problem's start kernel for a backend: the incumbent of a first attempt."""
    path = problem.start.get(backend)
    if path is None:
        return None
    return CandidateSource(backend=backend, files={candidate.ENTRY[backend]: problem.files[path]})


def first_incumbent(problem: Problem, backend: str, device: str) -> CandidateSource | None:
    """What a campaign in that language begins from, where it runs on that device at its own speed: the problem's start kernel
    in it, or else in another language."""
    other = backends.BACKENDS.get(candidate.starts(problem).get(backend, ""))
    if other is None or device not in other.devices or place.untimed(other, device):
        return start_kernel(problem, backend)
    return start_kernel(problem, other.name)


def _run_stages(evaluation: Evaluation, stages: list[Stage], results: list[StageResult]) -> None:
    for stage in stages:
        evaluation.progress(stage.name, "")
        if stage.name == FIRST_ON_BENCH:
            _warm_up(evaluation)
        began = time.monotonic()
        try:
            evaluation.checkpoint()
            detail, evidence = stage.run(evaluation)
        except Skip as skip:
            results.append(_result(stage, "skipped", str(skip), began))
        except CandidateFailure as failure:
            results.append(_result(stage, "failed", failure.message, began))
            raise
        except Infrastructure as error:
            results.append(_result(stage, "error", str(error), began))
            raise
        else:
            results.append(_result(stage, "passed", detail, began, evidence))


def _result(
    stage: Stage, status: Status, detail: str, began: float, evidence: dict[str, Any] | None = None
) -> StageResult:
    seconds = round(time.monotonic() - began, 3)
    return StageResult(name=stage.name, status=status, detail=detail, seconds=seconds, evidence=evidence or {})


def _warm_up(evaluation: Evaluation) -> None:
    """The warm bench of this problem; that of another problem makes room for it."""
    key = (evaluation.problem.sha256, evaluation.device, evaluation.request.baseline)
    if key not in _benches:
        _drop_benches()
        made = GpuBench if evaluation.gpu else Bench
        _benches[key] = made(evaluation.problem, evaluation.gpu or evaluation.device, key[2])  # type: ignore[arg-type]
    bench = _benches[key]
    bench.should_stop = evaluation.should_stop
    evaluation.progress(FIRST_ON_BENCH, "starting the reference and the baseline")
    if isinstance(bench, GpuBench):
        assert evaluation.gpu is not None
        bench.ready()
        evaluation.gpu_bench = bench
        evaluation.peaks = peaks.of(evaluation.gpu, bench.spares)
    else:
        bench.ready()
        evaluation.bench = bench
        evaluation.peaks = {} if evaluation.untimed or evaluation.request.mode == "check" else cpu_peaks.of()


def adopt(bench: Bench) -> None:
    """The next evaluation of its problem, on the CPU and against its baseline, finds these processes warm."""
    with _lock:
        _drop_benches()
        for stand in bench.stands.values():
            stand.baseline_calls = 0  # whatever was asked of it before: an evaluation checks it itself
        _benches[bench.problem.sha256, "cpu", bench.baseline_name] = bench


def _drop_benches() -> None:
    while _benches:
        _benches.popitem()[1].close()


def close() -> None:
    """End the warm processes. They end with this process in any case."""
    _drop_benches()
    close_spares()


atexit.register(close)


@contextlib.contextmanager
def _place(evaluation: Evaluation) -> Iterator[None]:
    """A GPU of its own while the block runs. A core is held only while it is timed."""
    if evaluation.device != "cuda":
        yield
        return
    with devices.reserved(evaluation.should_stop, evaluation.request.time_limit_s) as evaluation.gpu:
        yield


@contextlib.contextmanager
def _closing(evaluation: Evaluation) -> Iterator[None]:
    """Whatever happens, no process of a candidate or incumbent outlives the evaluation."""
    try:
        yield
    finally:
        for runner in list(evaluation.runners):
            evaluation.close_runner(runner)
        for on_gpu in list(evaluation.gpu_runners):
            evaluation.close_gpu(on_gpu)


def _summary(evaluation: Evaluation, stages: list[StageResult]) -> str:
    if evaluation.speedup is None:
        return next(s.detail for s in reversed(stages) if s.status == "passed")
    over = evaluation.over_incumbent
    text = f"{evaluation.speedup.value:.2f}× over the baseline"
    return text + (f", {over.value:.3f}× over the incumbent" if over else "")


def _report(
    request: EvaluationRequest,
    problem: Problem | None,
    evaluation: Evaluation | None,
    stages: list[StageResult],
    outcome: Outcome,
    summary: str,
    seconds: float,
) -> Report:
    incumbent = evaluation.incumbent if evaluation else request.incumbent
    measured = evaluation if outcome == "measured" else None
    return Report(
        outcome=outcome,
        summary=summary,
        problem=request.problem_name,
        problem_sha256=problem.sha256 if problem else "",
        candidate_sha256=candidate.sha256(request.candidate),
        incumbent_sha256=candidate.sha256(incumbent) if incumbent else None,
        baseline=request.baseline,
        backend=request.candidate.backend,
        mode=request.mode,
        harness_version=HARNESS_VERSION,
        host=this_host("cpu", evaluation.gpu, evaluation.peaks) if evaluation else this_host("cpu"),
        stages=stages,
        workloads=list(evaluation.results.values()) if evaluation else [],
        findings=evaluation.findings if evaluation else [],
        speedup=measured.speedup if measured else None,
        over_incumbent=measured.over_incumbent if measured else None,
        noise=measured.noise if measured else None,
        confirmation=evaluation.confirmation if evaluation else None,
        range=measured.range if measured else None,
        engagement=evaluation.engagement if evaluation else [],
        build_log=evaluation.build_log if evaluation else "",
        output="\n".join(evaluation.outputs) if evaluation else "",
        seconds=round(seconds, 3),
    )
