"""Step 6: how fast, against the baseline and the incumbent in the same session."""

from __future__ import annotations

from typing import Any

from ..session import BASELINE, CANDIDATE, INCUMBENT, Session
from .base import Evaluation, Skip


class Timing:
    name = "timing"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        if evaluation.request.mode == "check":
            raise Skip("correctness only was asked for")
        timed = [w for w in evaluation.workloads if w.timed]
        if not timed:
            raise Skip("no workload of this problem is timed here")
        assert evaluation.bench is not None
        assert evaluation.candidate_runner is not None
        session = Session(evaluation, evaluation.bench, evaluation.candidate_runner, self.name)
        outcome = session.run(timed)
        for name, (speedup, over, noise) in outcome.by_workload.items():
            times = outcome.times_us[name]
            evaluation.update(
                name,
                time_us=times[CANDIDATE],
                baseline_us=times[BASELINE],
                incumbent_us=times.get(INCUMBENT),
                speedup=speedup,
                over_incumbent=over,
                noise=noise,
            )
        evaluation.speedup, evaluation.over_incumbent = outcome.speedup, outcome.over_incumbent
        evaluation.noise = outcome.noise
        evidence = {
            "rounds": outcome.rounds,
            "stopped": outcome.stopped,
            "checked_calls": session.checked,
            "calls_in_block": {lane.stand.workload.name: lane.calls for lane in session.lanes},
            "empty_block_us": {who: round(took.wall_ns / 1e3, 1) for who, took in session.empty.items()},
            "disturbed": {who: good.count(False) for who, good in session.blocks.items()},
            "outside_the_clock_us": session.outside_us(),
            "seen_over_new": session.recall,
            "midway_apart": session.midway,
            "core": session.core,
        }
        return session.sentence(outcome), evidence
