"""Step 4 on a GPU: right on fresh draws, on hidden workloads, on edge cases, and again; with inputs left as they were."""

from __future__ import annotations

import time
from typing import Any

from ..accuracy import Comparison
from ..errors import CandidateFailure, Infrastructure
from ..gpu import precision
from ..gpu.runner import COMPILE_LIMIT_S, GpuRunner
from ..gpu.work import total_bytes
from ..problem import Workload
from ..report import Finding
from .base import Evaluation

DRAWS, SLOTS = 3, 2
"""Two outputs live at once; three draws of two make six fresh ones for each workload."""
REPEATS = 2
MIN_LIMIT_S = 5.0
BASELINE_FACTOR = 100.0
LARGE_BYTES = 1 << 30
"""Of a workload this large one draw of two is looked at."""


class GpuCorrectness:
    name = "correctness"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        runner = evaluation.gpu_candidate = evaluation.start_gpu("candidate")
        evaluation.start_engaged()
        evaluation.start_warming()
        runner.load()
        ordered = sorted(evaluation.workloads, key=lambda w: (w.hidden, total_bytes(evaluation.problem, w)))
        if evaluation.request.mode != "check":
            evaluation.on_gpu.warm_baseline(ordered)
        evidence: dict[str, Any] = {
            "draws": DRAWS * SLOTS,
            "repeats": REPEATS + 1,
            "edges": {},
            "rms_error": {},
            "seconds": {},
        }
        for done, workload in enumerate(ordered):
            evaluation.progress(self.name, f"workload {done + 1} of {len(ordered)}")
            began = time.monotonic()
            check = GpuCheck(evaluation, runner, workload)
            try:
                check.draws()
                evidence["edges"][workload.name] = check.edges()
            except CandidateFailure as failure:
                visible = workload.name if not workload.hidden else f"hidden workload {done + 1}"
                evaluation.update(workload.name, correct=False, detail=failure.message)
                raise CandidateFailure(
                    failure.outcome, f"{visible}: {failure.message}", failure.log, failure.rule
                ) from failure
            all_s = time.monotonic() - began
            evidence["seconds"][workload.name] = {"all": round(all_s, 3), "first_call": round(check.first_call_s, 3)}
            check.name_precision()
            evidence["rms_error"][workload.name] = check.rms_error
            evaluation.update(workload.name, correct=True, error=check.worst.error, tolerance=check.tolerance)
            if total_bytes(evaluation.problem, workload) > LARGE_BYTES:
                runner.drop(workload)
        return f"right on {len(ordered)} workloads, {DRAWS * SLOTS} fresh draws each", evidence


class GpuCheck:
    """All checks of one workload in one runner."""

    def __init__(self, evaluation: Evaluation, runner: GpuRunner, workload: Workload) -> None:
        self.evaluation, self.runner, self.workload = evaluation, runner, workload
        self.bench = evaluation.on_gpu
        problem = evaluation.problem
        self.slots = [f"{workload.name}/{i}" for i in range(SLOTS)]
        self.tolerance = max(problem.tolerance_for(spec, workload) for spec in problem.outputs)
        self.large = total_bytes(problem, workload) > LARGE_BYTES
        self.worst = Comparison(True, 0.0)
        self.rms_error = 0.0
        self.called = False
        self.first_call_s = 0.0
        """With whatever is compiled then."""
        self.limit_s = max(MIN_LIMIT_S, BASELINE_FACTOR * SLOTS * self.bench.time_baseline(workload))

    def draws(self) -> None:
        self.runner.make_slots(self.workload, self.slots)
        for number in range(1 if self.large else DRAWS):
            self.evaluation.checkpoint()
            self.renew()
            before = self.inputs_as_drawn() if number == 0 else None
            self.call()
            for index, slot in enumerate(self.slots):
                self.look(slot, whole=number == 0 and index == 0)
            if before is not None:
                self.inputs_unchanged(before)
                self.repeats()

    def renew(self) -> None:
        items = {slot: self.bench.draw() for slot in self.slots}
        self.bench.renew(self.runner, self.workload, items, self.slots)

    def poison(self) -> None:
        self.runner.renew({}, self.slots, self.bench.scales_of(self.workload))

    def call(self) -> None:
        """The first call may compile."""
        order = list(self.slots)
        self.evaluation.random.shuffle(order)
        limit_s = self.limit_s if self.called else max(self.limit_s, COMPILE_LIMIT_S)
        began = time.monotonic()
        self.runner.call(order, self.evaluation.block_limit_s(limit_s))
        if not self.called:
            self.called, self.first_call_s = True, time.monotonic() - began

    def look(self, slot: str, whole: bool = False) -> None:
        found = self.bench.check(self.runner, self.workload, slot, whole)
        if not found.comparison.passed:
            raise CandidateFailure("incorrect", found.comparison.detail)
        self.rms_error = max(self.rms_error, found.rms_error)
        if found.comparison.error >= self.worst.error:
            self.worst = found.comparison

    def inputs_as_drawn(self) -> dict[str, int]:
        """The runner's inputs and the reference's, from the same seed, are the same bits."""
        slot = self.slots[0]
        wanted = self.bench.input_digest(self.workload, self.runner.draws[slot])
        if self.runner.digest(slot, "inputs") != wanted:
            raise Infrastructure(
                f"{self.workload.name}: the same seed gave other inputs in another process: inputs.py must take all its "
                "values from the generator that it is given"
            )
        return wanted

    def inputs_unchanged(self, before: dict[str, int]) -> None:
        after = self.runner.digest(self.slots[0], "inputs")
        if changed := [name for name in before if after.get(name) != before[name]]:
            raise CandidateFailure("incorrect", f"it changed its inputs: {', '.join(changed)}")

    def repeats(self) -> None:
        """The same inputs again: each run must be right, and a difference in bits is noted."""
        before = [self.runner.digest(slot, "outputs") for slot in self.slots]
        for _ in range(1 if self.large else REPEATS):
            self.poison()
            self.call()
            for slot in self.slots:
                self.look(slot)
            if [self.runner.digest(slot, "outputs") for slot in self.slots] != before:
                self.evaluation.add_finding(
                    Finding(
                        rule="not-deterministic",
                        severity="note",
                        evidence="the same inputs gave outputs that differ in bits, each within the tolerance",
                    )
                )

    def edges(self) -> list[str]:
        """The problem's named hard cases. One that the baseline fails as well is left out, and said."""
        seed, slot, done = self.bench.seed(), self.slots[0], []
        for name in self.bench.edge_names(self.workload, seed):
            self.evaluation.checkpoint()
            draw = self.bench.draw()
            draw = type(draw)(draw.seed, name)
            self.bench.renew(self.runner, self.workload, {slot: draw}, [slot])
            self.runner.call([slot], self.evaluation.block_limit_s(self.limit_s))
            found = self.bench.check(self.runner, self.workload, slot)
            if found.comparison.passed:
                done.append(name)
            elif self.bench.baseline_passes(self.workload, draw):
                raise CandidateFailure("incorrect", f"edge case {name}: {found.comparison.detail}")
            else:
                done.append(f"{name} (left out: the baseline fails it too)")
        return done

    def name_precision(self) -> None:
        """Within the tolerance, but with a lower precision inside than declared: named, not refused."""
        dtype = self.workload.dtype
        if (what := precision.name(dtype, self.rms_error)) is not None:
            text = f"{self.workload.name}: {precision.explain(dtype, self.rms_error)}"
            data = {"rms_error": self.rms_error, "looks_like": what}
            self.evaluation.add_finding(Finding(rule="lower-precision", severity="warning", evidence=text, data=data))
