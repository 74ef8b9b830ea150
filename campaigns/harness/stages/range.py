"""After the timing: a candidate that does not win everywhere may win on a range of the swept axis.

The boundary is found by bisection with a few more measured workloads; the confirmation then asks about the range alone.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .. import ranges
from ..errors import CandidateFailure, Infrastructure
from ..gate import MIN_NOISE, MIN_NOISE_GPU, clears, is_worse
from ..gpu.runner import GpuRunner
from ..problem import Workload
from ..report import RangeWin, WorkloadResult
from ..session import BASELINE, CANDIDATE, INCUMBENT, Outcome, Session
from .base import Evaluation, Skip
from .correctness import SLOTS, WorkloadCheck
from .floor import floor_of

PROBES = 3
"""Workloads measured for the boundaries, at most."""


class RangeStage:
    name = "range"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        axis = evaluation.problem.sweep
        floor = MIN_NOISE_GPU if evaluation.gpu else MIN_NOISE
        why_not(evaluation, axis, floor)
        assert axis is not None
        found = ranges.find(list(evaluation.results.values()), axis, floor)
        if found is None:
            raise Skip(f"there is no part of {axis} in which it wins beyond the noise")
        self.left = PROBES
        self.probes: dict[str, bool | None] = {}
        bounds = {}
        with (OnGpu if evaluation.gpu else OnCpu)(evaluation) as self.place:
            for side, winning, losing in (("hi", found.values[-1], found.above), ("lo", found.values[0], found.below)):
                bounds[side] = winning if losing is None else self.bisect(evaluation, axis, winning, losing, floor)
        lo, hi = bounds["lo"], bounds["hi"]
        rows = ranges.inside(list(evaluation.results.values()), axis, lo, hi)
        evaluation.range = RangeWin(
            axis=axis,
            lo=lo,
            hi=hi,
            workloads=[row.name for row in rows],
            speedup=ranges.whole([row.speedup for row in rows]),
            over_incumbent=ranges.whole([row.over_incumbent for row in rows]),
            noise=ranges.whole([row.noise for row in rows]),
        )
        return f"wins for {axis} from {lo:,} to {hi:,}", {"axis": axis, "lo": lo, "hi": hi, "probes": self.probes}

    def bisect(self, evaluation: Evaluation, axis: str, winning: int, losing: int, floor: float) -> int:
        """The furthest value towards ``losing`` that was measured to win."""
        while self.left and (value := ranges.between(winning, losing)) is not None:
            self.left -= 1
            row = probe(evaluation, self.place, axis, winning, value)
            self.probes[str(value)] = None if row is None else ranges.wins(row, floor)
            if row is None:
                break
            winning, losing = (value, losing) if ranges.wins(row, floor) else (winning, value)
        return winning


def why_not(evaluation: Evaluation, axis: str | None, floor: float) -> None:
    """Raises ``Skip`` where there is nothing to ask."""
    over = evaluation.over_incumbent
    if axis is None:
        raise Skip("the problem names no axis to sweep")
    if over is None:
        raise Skip("nothing was measured against an incumbent")
    if any(f.severity == "block" for f in evaluation.findings):
        raise Skip("a blocking finding comes first")
    worse = any(is_worse(row.over_incumbent) for row in evaluation.results.values())
    if clears(over, evaluation.noise, floor=floor) and not worse:
        raise Skip("it wins as a whole")


def probe(evaluation: Evaluation, place: OnGpu | OnCpu, axis: str, like: int, value: int) -> WorkloadResult | None:
    """Check and time one more workload; None where the problem cannot make it, or the host could not measure it."""
    pattern = next(w for w in evaluation.workloads if w.timed and w.axes.get(axis) == nearest(evaluation, axis, like))
    workload = Workload(
        name=f"{pattern.name}, {axis} {value}", axes={**pattern.axes, axis: value}, device=pattern.device, hidden=True,
        dtype=pattern.dtype,
    )  # fmt: skip
    evaluation.progress("range", f"{axis} = {value}")
    try:
        evaluation.results[workload.name] = WorkloadResult(name=workload.name, hidden=True, axes=workload.axes)
        outcome = place.measure(workload)
    except Infrastructure:
        del evaluation.results[workload.name]
        return None
    except CandidateFailure as failure:
        evaluation.update(workload.name, correct=False, detail=failure.message)
        raise
    speedup, over, noise = outcome.by_workload[workload.name]
    times = outcome.times_us[workload.name]
    evaluation.update(
        workload.name, correct=True, time_us=times.get(CANDIDATE), baseline_us=times.get(BASELINE),
        incumbent_us=times.get(INCUMBENT), speedup=speedup, over_incumbent=over, noise=noise, labels=["boundary"],
        floor_us=floor_of(evaluation.problem, workload, evaluation.peaks),
    )  # fmt: skip
    evaluation.probed[workload.name] = workload
    return evaluation.results[workload.name]


def nearest(evaluation: Evaluation, axis: str, value: int) -> int:
    """The timed workload's value of the axis nearest to one that may itself be a probe's."""
    values = [w.axes[axis] for w in evaluation.workloads if w.timed and axis in w.axes]
    return min(values, key=lambda v: max(v, value) / min(v, value))


class OnCpu(contextlib.AbstractContextManager["OnCpu"]):
    """Checked and timed in the candidate's process, which is there."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    def __exit__(self, *error: object) -> None:
        pass

    def measure(self, workload: Workload) -> Outcome:
        evaluation = self.evaluation
        assert evaluation.bench is not None
        assert evaluation.candidate_runner is not None
        check = WorkloadCheck(
            evaluation, evaluation.bench, evaluation.candidate_runner, evaluation.bench.stand(workload, SLOTS)
        )
        check.draws()
        evaluation.update(workload.name, error=check.worst.error, tolerance=check.tolerance)
        return Session(evaluation, evaluation.bench, evaluation.candidate_runner, "range").run([workload])


class OnGpu(contextlib.AbstractContextManager["OnGpu"]):
    """Timed in fresh processes, the same for all probes. Its timed calls are checked against the reference, as all are."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.runners: dict[str, GpuRunner] = {}

    def __exit__(self, *error: object) -> None:
        while self.runners:
            self.evaluation.close_gpu(self.runners.popitem()[1])

    def measure(self, workload: Workload) -> Outcome:
        from .gpu_timing import measure_with

        if not self.runners:
            self.evaluation.start_warming([workload])
            self.runners = self.evaluation.warmed()
        outcome = measure_with(self.evaluation, self.runners, "range", [workload])[1]
        for runner in self.runners.values():
            runner.drop(workload)
        return outcome


def asked_of(evaluation: Evaluation) -> list[Workload]:
    """What a confirmation is about: all that is timed, or what lies in the range."""
    known = {w.name: w for w in evaluation.workloads if w.timed} | evaluation.probed
    if evaluation.range is None:
        return [w for w in evaluation.workloads if w.timed]
    return [known[name] for name in evaluation.range.workloads]
