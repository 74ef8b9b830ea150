"""Step 4 on a GPU: right on fresh draws, on hidden workloads, on edge cases, and again; with inputs left as they were."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from .. import cores
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
PROCESSES, CORES_EACH = 2, 6
"""A candidate is checked in so many processes where there are so many cores for each: those that time it and that see what
runs compile beside them."""
MIN_LIMIT_S = 5.0
BASELINE_FACTOR = 100.0
LARGE_BYTES = 1 << 30
"""Of a workload this large one draw of two is looked at."""


class GpuCorrectness:
    name = "correctness"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        ordered = sorted(evaluation.workloads, key=lambda w: (w.hidden, total_bytes(evaluation.problem, w)))
        runners = [evaluation.start_gpu("candidate") for _ in range(min(processes(), len(ordered)))]
        evaluation.start_engaged()
        evaluation.start_warming()
        if evaluation.request.mode != "check":
            evaluation.on_gpu.warm_baseline(ordered)
        began = time.monotonic()
        for runner in runners:
            runner.load()
        seconds: dict[str, Any] = {"loading": round(time.monotonic() - began, 3)}
        done = Beside(evaluation, runners, ordered, self.name).all()
        evidence: dict[str, Any] = {
            "draws": DRAWS * SLOTS,
            "repeats": REPEATS + 1,
            "processes": len(runners),
            "edges": {w.name: done[w.name].edge_names for w in ordered},
            "rms_error": {w.name: done[w.name].rms_error for w in ordered},
            "seconds": seconds | {w.name: done[w.name].seconds for w in ordered},
        }
        return f"right on {len(ordered)} workloads, {DRAWS * SLOTS} fresh draws each", evidence


def processes() -> int:
    """In how many of its processes a candidate's workloads are checked: each compiles what it needs for itself."""
    return max(1, min(PROCESSES, cores.count() // CORES_EACH))


class Beside:
    """Workloads checked in several processes of the candidate at the same time, each in one of them.

    They are begun in their order, so that the failure of the first in it that fails is the one that is told, whichever
    process is the faster. Those after it that were begun are finished, and no more are.
    """

    def __init__(
        self, evaluation: Evaluation, runners: Sequence[GpuRunner], ordered: Sequence[Workload], stage: str
    ) -> None:
        self.evaluation, self.runners, self.ordered, self.stage = evaluation, runners, ordered, stage
        self.lock, self.one_large = threading.Lock(), threading.Lock()
        self.begun = 0
        self.done: dict[str, GpuCheck] = {}
        self.failures: dict[int, BaseException] = {}

    def all(self) -> dict[str, GpuCheck]:
        """By workload. Raises what the first of them failed with."""
        threads = [
            threading.Thread(target=self._some, args=(runner,), name="checks", daemon=True)
            for runner in self.runners[1:]
        ]
        for thread in threads:
            thread.start()
        self._some(self.runners[0], self._say)
        for thread in threads:
            thread.join()
        for workload in self.ordered:
            if workload.name in self.done:
                self.done[workload.name].tell()
        if self.failures:
            self._raise(min(self.failures))
        return self.done

    def _some(self, runner: GpuRunner, say: Callable[[int], None] = lambda number: None) -> None:
        """One process's share. Only the evaluation's own thread tells how far it is."""
        while (number := self._next()) is not None:
            say(number)
            workload = self.ordered[number]
            try:
                check = GpuCheck(self.evaluation, runner, workload)
                with self.one_large if check.large else contextlib.nullcontext():
                    check.all()
            except BaseException as error:
                self.failures[number] = error
            else:
                self.done[workload.name] = check

    def _next(self) -> int | None:
        with self.lock:
            if self.failures or self.begun == len(self.ordered):
                return None
            self.begun += 1
            return self.begun - 1

    def _say(self, number: int) -> None:
        self.evaluation.progress(self.stage, f"workload {number + 1} of {len(self.ordered)}")

    def _raise(self, number: int) -> None:
        workload, failure = self.ordered[number], self.failures[number]
        if not isinstance(failure, CandidateFailure):
            raise failure
        self.evaluation.update(workload.name, correct=False, detail=failure.message)
        visible = workload.name if not workload.hidden else f"hidden workload {number + 1}"
        raise CandidateFailure(failure.outcome, f"{visible}: {failure.message}", failure.log, failure.rule) from failure


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
        self.same_bits = True
        self.edge_names: list[str] = []
        self.seconds: dict[str, float] = {}
        """Of all its checks, and of its first call, with whatever is compiled then."""
        self.limit_s = max(MIN_LIMIT_S, BASELINE_FACTOR * SLOTS * self.bench.time_baseline(workload))

    def all(self) -> None:
        began = time.monotonic()
        self.draws()
        self.edge_names = self.edges()
        if self.large:
            self.runner.drop(self.workload)
        self.seconds["all"] = round(time.monotonic() - began, 3)

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
            self.called, self.seconds["first_call"] = True, round(time.monotonic() - began, 3)

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
                self.same_bits = False

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

    def tell(self) -> None:
        """What its checks, all passed, showed."""
        evaluation, workload = self.evaluation, self.workload
        evaluation.checkers[workload.name] = self.runner
        evaluation.update(workload.name, correct=True, error=self.worst.error, tolerance=self.tolerance)
        if not self.same_bits:
            text = "the same inputs gave outputs that differ in bits, each within the tolerance"
            evaluation.add_finding(Finding(rule="not-deterministic", severity="note", evidence=text))
        if (
            what := precision.name(workload.dtype, self.rms_error)
        ) is not None:  # lower than declared: named, not refused
            text = f"{workload.name}: {precision.explain(workload.dtype, self.rms_error)}"
            data = {"rms_error": self.rms_error, "looks_like": what}
            evaluation.add_finding(Finding(rule="lower-precision", severity="warning", evidence=text, data=data))
