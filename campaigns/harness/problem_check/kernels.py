"""Start kernels and baselines: each must be right before anything is measured against it."""

from __future__ import annotations

from collections.abc import Callable

from .. import backends, candidate
from ..accuracy import compare, rms
from ..bench import Bench
from ..errors import CandidateError, Infrastructure
from ..evaluator import adopt, evaluate, start_kernel
from ..memory import as_float64
from ..problem import Problem
from ..request import EvaluationRequest
from ..runner import Poison
from .findings import Findings

Progress = Callable[[str, str], None]


def right_on(workloads: int) -> str:
    return f"right on {workloads} workload{'' if workloads == 1 else 's'}"


def check_start(problem: Problem, findings: Findings, progress: Progress, should_stop: Callable[[], bool]) -> None:
    if not problem.start:
        findings.note(
            "no start kernel: a campaign begins with nothing to compare a first attempt with but the baseline"
        )
    for name in problem.start:
        progress("start kernels", name)
        findings.kernels[f"start {name}"] = _start(problem, name, findings, should_stop)


def _start(problem: Problem, name: str, findings: Findings, should_stop: Callable[[], bool]) -> str:
    source = start_kernel(problem, name)
    assert source is not None
    try:
        candidate.tunables(source)
        devices = [d for d in backends.get(name).devices if problem.workloads_on(d)]
    except CandidateError as error:
        if name not in backends.BACKENDS or backends.BACKENDS[name].missing():
            return f"not checked: {error}"
        return _wrong(findings, name, str(error))
    if not devices:
        return "not checked: the problem has no workload on a device that this machine has"
    request = EvaluationRequest(
        problem_name=problem.name,
        problem_files=problem.files,
        candidate=source,
        baseline=problem.default_baseline(),
        mode="check",
    )
    report = evaluate(request, should_stop=should_stop)
    if report.outcome == "measured":
        return right_on(sum(bool(w.correct) for w in report.workloads))
    if report.outcome == "infrastructure":
        return f"not checked: {report.summary}"
    return _wrong(findings, name, f"{report.outcome}: {report.summary}")


def _wrong(findings: Findings, name: str, words: str) -> str:
    findings.refuse(
        "start-kernel-wrong",
        name,
        f"the {name} start kernel does not pass: {words}",
        "Correct it (manage.py evaluate PROBLEM KERNEL shows more), or take its line out of [start].",
    )
    return words


def check_baselines(problem: Problem, findings: Findings, progress: Progress, should_stop: Callable[[], bool]) -> None:
    """On the CPU: those of a GPU are seen by the first evaluation there.

    One reference process answers for all; the default baseline comes last, and stays warm for the start kernels.
    """
    if not problem.workloads_on("cpu"):
        findings.note("the baselines were not checked: all workloads are for a GPU")
        return
    bench = Bench(problem, "cpu", problem.default_baseline())
    bench.should_stop = should_stop
    found: dict[str, str] = {}
    try:
        for name in sorted(problem.baselines, key=lambda name: name == problem.default_baseline()):
            progress("baselines", name)
            bench.turn_to(name)
            found[name] = _baseline(problem, bench, findings)
    except BaseException:
        bench.close()
        raise
    findings.kernels |= {f"baseline {name}": found[name] for name in problem.baselines}
    adopt(bench)


def _baseline(problem: Problem, bench: Bench, findings: Findings) -> str:
    name = bench.baseline_name
    try:
        bench.ready()
        wrong = [words for w in problem.workloads_on("cpu") if (words := _compare(problem, bench, w.name))]
    except Infrastructure as error:
        wrong = [str(error)]
    if not wrong:
        return right_on(len(problem.workloads_on("cpu")))
    findings.refuse(
        "baseline-wrong",
        name,
        f"baseline {name} does not pass: {wrong[0].removeprefix(f'baseline {name}: ')}",
        "Correct it: it is the denominator of every speed-up. Or make the tolerance what honest code of its kind needs.",
    )
    return wrong[0]


def _compare(problem: Problem, bench: Bench, workload_name: str) -> str:
    """What is wrong with the baseline at one workload; nothing when it is right."""
    workload = next(w for w in problem.workloads if w.name == workload_name)
    stand = bench.stand(workload, 1)
    slots = stand.slots[:1]
    bench.refresh(stand, slots)
    expected = bench.expect(stand, slots[0])
    assert bench.baseline is not None
    bench.baseline.map(workload, slots)
    outputs = bench.baseline.slots[slots[0].name]
    stand.poison = Poison.make(outputs.places, {name: rms(values) for name, values in expected.items()})
    bench.run_baseline(stand, slots)
    for spec, place in zip(problem.outputs, outputs.places, strict=True):
        t = problem.tolerance_for(spec, workload)
        found = compare(as_float64(outputs.tensor(place), place.dtype), expected[place.name], t)
        if not found.passed:
            return f"workload {workload.name}, output {place.name}: {found.detail}"
    return ""
