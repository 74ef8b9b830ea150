"""Step 4: right on fresh draws, on hidden workloads, on edge cases, and again.

The calls are the same kind of block as those that are timed: a candidate cannot tell a check from a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accuracy import Comparison, rms
from ..bench import Bench, Stand
from ..comparing import against, compare_slot
from ..errors import CandidateFailure, Infrastructure
from ..memory import Area
from ..report import Finding
from ..runner import InputSlot, Poison, Runner
from .base import Evaluation

DRAWS = 3
SLOTS = 2
"""Two outputs live at once; three draws of two make six fresh ones for each workload."""
REPEATS = 2
DEAR_S = 0.08
"""A float64 reference slower than this serves the first draw; later ones are compared with the baseline, which the
first draw has checked, and with the reference where the two disagree."""
EDGE_INPUT_BYTES = 6 << 20
MIN_LIMIT_S = 5.0
BASELINE_FACTOR = 100.0


class Correctness:
    name = "correctness"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        bench = evaluation.bench
        assert bench is not None
        runner = evaluation.candidate_runner = evaluation.start_candidate()
        runner.load()
        ordered = sorted(evaluation.workloads, key=lambda w: (w.hidden, input_bytes(evaluation, w.name)))
        evidence: dict[str, Any] = {"draws": {}, "repeats": REPEATS + 1, "edges": {}}
        for done, workload in enumerate(ordered):
            evaluation.progress(self.name, f"workload {done + 1} of {len(ordered)}")
            check = WorkloadCheck(evaluation, bench, runner, bench.stand(workload, SLOTS))
            try:
                check.draws()
                evidence["draws"][workload.name] = check.drawn
                evidence["edges"][workload.name] = check.edges()
            except CandidateFailure as failure:
                failure = check.explained(failure)
                visible = workload.name if not workload.hidden else f"hidden workload {done + 1}"
                evaluation.update(workload.name, correct=False, detail=failure.message)
                raise CandidateFailure(
                    failure.outcome, f"{visible}: {failure.message}", failure.log, failure.rule
                ) from failure
            evaluation.update(
                workload.name,
                correct=True,
                error=check.worst.error,
                tolerance=check.tolerance,
                detail=check.worst.detail,
            )
        edges = sum(len(names) for names in evidence["edges"].values())
        draws = sum(evidence["draws"].values())
        return f"right on {len(ordered)} workloads: {draws} fresh draws and {edges} edge cases", evidence


def input_bytes(evaluation: Evaluation, name: str) -> int:
    workload = next(w for w in evaluation.workloads if w.name == name)
    values = [np.prod(evaluation.problem.shape(spec, workload)) for spec in evaluation.problem.inputs]
    return int(sum(values))


class WorkloadCheck:
    """All checks of one workload."""

    def __init__(self, evaluation: Evaluation, bench: Bench, runner: Runner, stand: Stand) -> None:
        self.evaluation, self.bench, self.runner, self.stand = evaluation, bench, runner, stand
        self.problem, self.workload = evaluation.problem, stand.workload
        self.worst = Comparison(True, 0.0)
        self.tolerance = max(self.problem.tolerance_for(s, self.workload) for s in self.problem.outputs)
        self.limit_s = 60.0
        self.drawn = 0

    def draws(self) -> None:
        slots = self.stand.slots[:SLOTS]
        for draw in range(DRAWS):
            if draw and self.rest_is_timed():
                break
            self.evaluation.checkpoint()
            self.bench.refresh(self.stand, slots)
            expected = self.expected(slots, use_reference=draw == 0 or self.by_reference())
            order = list(slots)
            self.evaluation.random.shuffle(order)
            self.call(order, expected, first=draw == 0)
            self.drawn += len(slots)
            if draw == 0:
                self.repeats(slots, expected)

    def rest_is_timed(self) -> bool:
        """A dear workload that will be timed gets its other draws there: every timed call is on a fresh one."""
        timed = self.workload.timed and self.evaluation.request.mode != "check"
        return timed and not self.by_cheap_reference() and self.stand.baseline_right

    def by_cheap_reference(self) -> bool:
        return self.stand.expect_s < DEAR_S

    def by_reference(self) -> bool:
        return self.by_cheap_reference() or not self.stand.baseline_right

    def expected(self, slots: Sequence[InputSlot], use_reference: bool) -> dict[str, dict[str, NDArray[Any]]]:
        """Expected outputs by slot. The baseline runs over every first draw, for its time and to be checked itself."""
        found: dict[str, dict[str, NDArray[Any]]] = {}
        if use_reference:
            found = {s.name: self.bench.expect(self.stand, s, i) for i, s in enumerate(slots)}
            if self.stand.poison is None or self.stand.baseline_calls == 0:
                self.set_poison(found[slots[0].name])
        first = self.stand.baseline_calls == 0
        if first or not use_reference:
            took = self.bench.run_baseline(self.stand, slots)
            if first:  # once more, without what it did only once
                took = self.bench.run_baseline(self.stand, slots)
            self.stand.baseline_s = took.cpu_ns / 1e9 / len(slots)
        if first:
            assert self.bench.baseline is not None
            outputs = self.bench.baseline.slots
            results = [against(self.problem, self.stand, outputs[name], found[name]) for name in found]
            self.stand.baseline_right = all(r.passed for r in results)
        self.limit_s = max(MIN_LIMIT_S, BASELINE_FACTOR * self.stand.baseline_s * len(slots))
        return found

    def set_poison(self, expected: dict[str, NDArray[np.float64]]) -> None:
        self.runner.map(self.workload, self.stand.slots[:1])
        places = self.runner.slots[self.stand.slots[0].name].places
        self.stand.scales = {name: rms(values) for name, values in expected.items()}
        self.stand.poison = Poison.make(places, self.stand.scales)

    def call(
        self, slots: Sequence[InputSlot], expected: dict[str, dict[str, NDArray[Any]]], first: bool = False
    ) -> None:
        self.runner.map(self.workload, slots)
        limit_s = self.evaluation.block_limit_s(self.limit_s)
        self.runner.block([s.name for s in slots], self.stand.poison, limit_s)
        for slot in slots:
            self.compare(slot, expected.get(slot.name))

    def compare(self, slot: InputSlot, expected: dict[str, NDArray[Any]] | None) -> None:
        found = compare_slot(self.problem, self.bench, self.stand, self.runner, slot, expected)
        if not found.passed:
            if not self.stand.baseline_right:
                raise Infrastructure(
                    f"{self.workload.name}: neither the candidate nor the baseline agrees with the reference "
                    f"({found.detail}): the problem is wrong, or its tolerance too tight"
                )
            raise CandidateFailure("incorrect", found.detail)
        if found.error >= self.worst.error:
            self.worst = found

    def repeats(self, slots: Sequence[InputSlot], expected: dict[str, dict[str, NDArray[Any]]]) -> None:
        """The same inputs again: each run must be right, and a difference in bits is noted."""
        before = self.bits(slots)
        for _ in range(REPEATS):
            self.call(slots, expected)
            if self.bits(slots) != before:
                self.evaluation.add_finding(
                    Finding(
                        rule="not-deterministic",
                        severity="note",
                        evidence="the same inputs gave outputs that differ in bits, each within the tolerance",
                    )
                )

    def bits(self, slots: Sequence[InputSlot]) -> list[int]:
        outputs = [self.runner.slots[s.name] for s in slots]
        return [hash(o.tensor(p).tobytes()) for o in outputs for p in o.places]

    def edges(self) -> list[str]:
        """The problem's named hard cases. One that the baseline fails as well is left out, and said."""
        if sum(p.nbytes for p in self.stand.slots[0].places) > EDGE_INPUT_BYTES:
            return []
        slot = self.stand.slots[0]
        done = []
        for name in self.bench.edge_names(self.stand):
            self.evaluation.checkpoint()
            self.bench.edge(self.stand, slot, name)
            expected = {slot.name: self.bench.expect(self.stand, slot)}
            try:
                self.call([slot], expected)
                done.append(name)
            except CandidateFailure as failure:
                if failure.outcome != "incorrect" or self.baseline_passes(slot, expected[slot.name]):
                    raise CandidateFailure(
                        failure.outcome, f"edge case {name}: {failure.message}", rule=failure.rule
                    ) from failure
                done.append(f"{name} (left out: the baseline fails it too)")
        return done

    def baseline_passes(self, slot: InputSlot, expected: dict[str, NDArray[Any]]) -> bool:
        self.bench.run_baseline(self.stand, [slot])
        assert self.bench.baseline is not None
        return against(self.problem, self.stand, self.bench.baseline.slots[slot.name], expected).passed

    def explained(self, failure: CandidateFailure) -> CandidateFailure:
        """A crash may come from writing to an input, which is read-only here: tried again where that is possible."""
        if "SIGSEGV" not in failure.message or not self.writes_inputs():
            return failure
        return CandidateFailure("incorrect", "it changed its inputs", failure.log)

    def writes_inputs(self) -> bool:
        slot = self.stand.slots[0]
        copy = InputSlot(f"{slot.name}.copy", Area(slot.area.nbytes), slot.places, writable=True)
        copy.area.bytes[:] = slot.area.bytes
        runner = self.evaluation.start_candidate()
        try:
            runner.load()
            runner.map(self.workload, [copy])
            runner.block([copy.name], self.stand.poison, self.limit_s)
        except CandidateFailure:
            return False
        finally:
            self.evaluation.close_runner(runner)
        return not np.array_equal(copy.area.bytes, slot.area.bytes)
