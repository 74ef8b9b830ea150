"""The same measurement on a GPU: each variant a process of its own, its call a CUDA graph, inputs drawn by seed inside.

The evaluator's clock decides here as well. A step reads far more than the second-level cache holds, so one place for the
inputs is enough; each round draws them anew, the same in all processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable

from campaigns.harness.errors import CandidateFailure, Infrastructure
from campaigns.harness.gpu import devices, peaks
from campaigns.harness.gpu.bench import EXPECT_LIMIT_S, EXPECTED_AREA, GpuBench, close_spares, trusted
from campaigns.harness.gpu.devices import Gpu
from campaigns.harness.gpu.runner import COMPILE_LIMIT_S, STORE_LIMIT_S, GpuRunner
from campaigns.harness.gpu.work import Draw, describe, expected_dtype, pieces, sizes
from campaigns.harness.hosts import this_host
from campaigns.harness.memory import Place, as_float64
from campaigns.harness.report import Host

from .ahead import Ahead
from .catalogue import Scenario
from .measure import CALL_LIMIT_S, MIN_PAIRS, WARM_CALLS, Session
from .parity import joined, parity
from .request import Parity, StackReport, StackRequest
from .variants import Variant

CALLS = 4
"""Calls in a block: the evaluator's clock is disturbed by some 20 µs a block."""
ROUNDS = 16
"""At most: rounds on a GPU differ by a thousandth or two."""
GRAPH = "block"
COMPILED_LIMIT_S = 300.0


def measure_on_gpu(
    request: StackRequest,
    scenario: Scenario,
    progress: Callable[[str, str], None],
    stop: Callable[[], bool],
    began: float,
) -> StackReport:
    with devices.reserved(stop, request.time_limit_s) as gpu:
        session = GpuSession(request, scenario, progress, stop)
        session.gpu = gpu
        try:
            return session.run(began)
        finally:
            session.close()


class GpuSession(Session):
    gpu: Gpu
    over = False

    def prepare(self) -> None:
        self.on_gpu = GpuBench(self.problem, self.gpu, self.problem.default_baseline())
        self.on_gpu.should_stop = self.stop
        self.on_gpu.ready()
        self.place = f"{self.workload.name}/0"
        self.scales = self.on_gpu.scales_of(self.workload)
        self.draw = self.on_gpu.draw()
        self.coming = Ahead(self.begun)

    def close_bench(self) -> None:
        if hasattr(self, "coming"):
            self.over = True
            self.coming.close()
        if hasattr(self, "on_gpu"):
            self.on_gpu.close()
            close_spares()

    def ahead(self, variants: Iterable[Variant]) -> None:
        self.coming.ask(variants)

    def host(self, peaks: dict[str, float]) -> Host:
        return this_host("cpu", self.gpu, peaks)

    def start(self, variant: Variant) -> GpuRunner:
        """Its process, loaded and warm, with its calls captured. Raises ``CandidateFailure``."""
        runner = self.coming.take(variant)
        self.runners[variant.who] = runner
        return runner

    def begun(self, variant: Variant) -> GpuRunner:
        """In a thread, beside others."""
        runner = GpuRunner.start(
            variant.who, self.on_gpu.spares, self.problem, variant.source(), variant.built(),
            lambda: self.over or self.stop(),
        )  # fmt: skip
        try:
            runner.load()
            runner.make_slots(self.workload, [self.place])
            runner.renew({self.place: self.draw}, [self.place], self.scales)
            for call in range(WARM_CALLS):
                first_s = COMPILED_LIMIT_S if variant.compiled else COMPILE_LIMIT_S
                runner.call([self.place], first_s if call == 0 else CALL_LIMIT_S)
            runner.capture(GRAPH, [self.place] * CALLS, COMPILE_LIMIT_S)
            runner.block([GRAPH], [], CALL_LIMIT_S)  # the first replay uploads the graph
        except BaseException:
            runner.close()
            raise
        return runner

    def renew(self, names: list[str]) -> None:
        """The same new inputs for all of these, and wrong values in their outputs."""
        self.draw = self.on_gpu.draw()
        for name in names:
            self.runners[name].renew({self.place: self.draw}, [self.place], self.scales)

    def check(self, who: str) -> Parity:
        """Fresh draws through one process by graph, each against the reference."""
        parts = []
        for _ in range(self.request.draws):
            self.checkpoint()
            self.renew([who])
            self.runners[who].block([GRAPH], [], CALL_LIMIT_S)
            parts.append(self.compared(who))
        return joined(parts)

    def compared(self, who: str) -> Parity:
        """What lies in its outputs now, against what the reference makes of the same seed."""
        runner: GpuRunner = self.runners[who]
        drawn: Draw = runner.draws[self.place]
        (piece,) = pieces(self.problem, self.workload, True, random.Random(0))
        out_bytes, expected_bytes = sizes(self.problem, self.workload, [piece])
        area = runner.ensure_area(out_bytes)
        expected = self.on_gpu.expected(expected_bytes)
        item = [piece.name, piece.first, piece.count]
        stored = runner.ask("store", STORE_LIMIT_S, slot=self.place, area=0, pieces=[[*item, piece.out_byte]])
        if stored.get("guards") is not True:
            raise CandidateFailure("incorrect", "wrote outside its outputs")
        with trusted("reference process"):
            assert self.on_gpu.reference is not None
            self.on_gpu.reference.ask(
                "expect", EXPECT_LIMIT_S, workload=describe(self.problem, self.workload), seed=drawn.seed,
                edge=drawn.edge, area=EXPECTED_AREA, pieces=[[*item, piece.expected_byte]],
            )  # fmt: skip
        (spec,) = self.problem.outputs
        shape, dtype = self.problem.shape(spec, self.workload), self.problem.tensor_dtype(spec, self.workload)
        wide = expected_dtype(dtype)
        out = as_float64(area.view(Place(spec.name, piece.out_byte, shape, dtype)), dtype)
        want = as_float64(expected.view(Place(spec.name, piece.expected_byte, shape, wide)), wide)
        return parity(out, want, self.problem.tolerance_for(spec, self.workload))

    def rounds(self, names: list[str], rounds: int, checked: list[str] | None = None) -> dict[str, list[float]]:
        """µs of one step by variant and round. Each round has new inputs and another order; a timed call of each stage is
        checked in every fourth round."""
        times: dict[str, list[float]] = {name: [] for name in names}
        steps = self.workload.axes.get("steps", 1)
        self.coming.drop()
        try:
            with self.on_gpu.spares.still():
                for number in range(min(rounds, ROUNDS)):
                    if number >= MIN_PAIRS and time.monotonic() > self.deadline:
                        break  # what is there is enough to say something, with a wider interval
                    self.checkpoint()
                    self.renew(names)
                    for name in self.random.sample(names, len(names)):
                        took = self.runners[name].block([GRAPH], [], CALL_LIMIT_S)
                        times[name].append(took.wall_ns / (1e3 * CALLS * steps))
                    for name in (checked or []) if number % 4 == 0 else []:
                        found = self.compared(name)
                        if not found.passed:
                            raise Infrastructure(
                                f"{name}: right when it was checked, wrong in a timed call: {found.detail}"
                            )
        except CandidateFailure as failure:
            raise Infrastructure(f"while it was timed: {failure.message}") from failure
        return times

    def peaks(self) -> dict[str, float]:
        return peaks.of(self.gpu, self.on_gpu.spares)
