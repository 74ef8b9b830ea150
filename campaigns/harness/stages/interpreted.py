"""Step 3 where Triton is interpreted: with its kernels emptied, or made to fail, the output must be wrong."""

from __future__ import annotations

from typing import Any

from .. import backends
from ..backends import Built
from ..comparing import against
from ..errors import CandidateFailure
from ..gpu.engaged import twins_of
from ..problem import Workload
from ..request import CandidateSource
from .base import Evaluation
from .engagement import right_without

CALL_LIMIT_S = 60.0


class InterpretedEngagement:
    """After the correctness of the whole: its outputs were right, and the question is whose work that was."""

    name = "engagement"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        workload = max(evaluation.workloads, key=lambda w: sum(w.axes.values()))
        found = twins_of(evaluation.request.candidate)
        right = [name for name, twin in found.items() if self.is_right(evaluation, workload, name, twin)]
        for name in right:
            evaluation.add_finding(right_without(name, workload.name))
        blocking = [f for f in evaluation.findings if f.severity == "block"]
        if blocking:
            raise CandidateFailure("flagged", blocking[0].evidence, rule=blocking[0].rule)
        evidence = {"workload": workload.name, "twins": sorted(found), "right": right}
        return "without its kernels the output is wrong, as it must be", evidence

    def is_right(self, evaluation: Evaluation, workload: Workload, name: str, twin: CandidateSource) -> bool:
        """Whether the twin's output is right; one that fails is not."""
        bench = evaluation.bench
        assert bench is not None
        assert evaluation.built is not None
        built: Built = backends.get(twin.backend).build(twin)
        stand = bench.stand(workload, 1)
        slot = stand.slots[0]
        runner = evaluation.start_runner(f"candidate, its kernels {name}", twin, built)
        try:
            runner.load()
            bench.refresh(stand, [slot])
            expected = bench.expect(stand, slot)
            runner.map(workload, [slot])
            runner.block([slot.name], stand.poison, evaluation.block_limit_s(CALL_LIMIT_S))
        except CandidateFailure:
            return False
        finally:
            outputs = runner.slots.get(slot.name)
            evaluation.close_runner(runner)
        assert outputs is not None
        return against(evaluation.problem, stand, outputs, expected).passed
