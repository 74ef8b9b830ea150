"""Steps 6 and 8 on a GPU: timed against baseline and incumbent; a would-be keep again in fresh processes."""

from __future__ import annotations

from typing import Any

from ..errors import CandidateFailure
from ..gate import MIN_NOISE_GPU, clears
from ..gpu.runner import GpuRunner
from ..gpu.session import GpuSession
from ..gpu.warming import dropped
from ..problem import Workload
from ..report import Confirmation
from ..session import BASELINE, CANDIDATE, INCUMBENT, Outcome
from .base import Evaluation, Skip
from .range import asked_of


def measure(evaluation: Evaluation, stage: str, timed: list[Workload]) -> tuple[GpuSession, Outcome]:
    """A session over these workloads, with the processes that have been warmed for it."""
    runners = evaluation.warmed()
    try:
        return measure_with(evaluation, runners, stage, timed)
    finally:
        for runner in runners.values():
            evaluation.close_gpu(runner)


def measure_with(
    evaluation: Evaluation, runners: dict[str, GpuRunner], stage: str, timed: list[Workload]
) -> tuple[GpuSession, Outcome]:
    """A session over these workloads in those processes, which live on."""
    bench = evaluation.on_gpu
    assert bench.baseline is not None
    with bench.spares.still(), dropped([bench.baseline], timed):
        session = GpuSession(evaluation, bench, {BASELINE: bench.baseline, **runners}, stage)
        return session, session.run(timed)


class GpuTiming:
    name = "timing"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        if evaluation.request.mode == "check":
            raise Skip("correctness only was asked for")
        if not any(w.timed for w in evaluation.workloads):
            raise Skip("no workload of this problem is timed here")
        session, outcome = measure(evaluation, self.name, [w for w in evaluation.workloads if w.timed])
        for lane in session.lanes:
            name = lane.workload.name
            speedup, over, noise = outcome.by_workload[name]
            times = outcome.times_us[name]
            evaluation.update(
                name,
                time_us=times.get(CANDIDATE),
                baseline_us=times.get(BASELINE),
                incumbent_us=times.get(INCUMBENT),
                speedup=speedup,
                over_incumbent=over,
                noise=noise,
                labels=lane.labels(),
            )
        evaluation.speedup, evaluation.over_incumbent = outcome.speedup, outcome.over_incumbent
        evaluation.noise = outcome.noise
        return session.sentence(outcome), evidence(session, outcome)


def evidence(session: GpuSession, outcome: Outcome) -> dict[str, Any]:
    return {
        "rounds": outcome.rounds,
        "stopped": outcome.stopped,
        "checked_calls": session.checked,
        "slots": {lane.workload.name: len(lane.slots) for lane in session.lanes},
        "calls_in_block": {lane.workload.name: lane.calls for lane in session.lanes},
        "nodes": {lane.workload.name: lane.nodes.get(CANDIDATE) for lane in session.lanes},
        "evaluator_clock_over_device_clock": session.clocks(),
        "new_over_seen": session.recall,
        "not_graphed": {lane.workload.name: lane.direct for lane in session.lanes if lane.direct},
        "seconds": {name: round(value, 2) for name, value in session.seconds.items()},
    }


class GpuConfirmation:
    name = "confirmation"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        over = evaluation.over_incumbent
        if evaluation.range is None and not clears(over, evaluation.noise, floor=MIN_NOISE_GPU):
            raise Skip("only a candidate that beat the incumbent beyond the noise is confirmed")
        if any(f.severity == "block" for f in evaluation.findings):
            raise Skip("a blocking finding comes first")
        try:
            asked = asked_of(evaluation)
            evaluation.start_warming(asked)
            session, outcome = measure(evaluation, self.name, asked)
        except CandidateFailure as failure:
            evaluation.confirmation = Confirmation(
                speedup=None, over_incumbent=None, noise=None, correct=False, detail=failure.message
            )
            raise
        held = clears(outcome.over_incumbent, outcome.noise, floor=MIN_NOISE_GPU)
        text = f"{'held' if held else 'did not hold'} in fresh processes: {session.sentence(outcome)}"
        evaluation.confirmation = Confirmation(
            speedup=outcome.speedup,
            over_incumbent=outcome.over_incumbent,
            noise=outcome.noise,
            correct=True,
            detail=text,
        )
        return text, {**evidence(session, outcome), "held": held}
