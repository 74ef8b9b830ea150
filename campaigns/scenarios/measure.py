"""One measurement of a stack: true baseline, each kernel alone, the stack as it grows; interleaved, in sandboxes.

Kernels are no more trusted here than when they were judged: each variant is a process in a sandbox of its own, inputs are
sealed, outputs hold wrong values before each call, and the evaluator's clock decides. An operator's share of the step is
found by leaving it out, so that no clock inside a sandbox is asked.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from campaigns.harness import cores
from campaigns.harness.bench import BASELINE_LIMITS, COMPILE_LIMIT_S, Bench
from campaigns.harness.channel import Took
from campaigns.harness.errors import CandidateFailure, Infrastructure, Stopped
from campaigns.harness.hosts import this_host
from campaigns.harness.memory import as_float64
from campaigns.harness.problem import files_sha256
from campaigns.harness.report import Host
from campaigns.harness.runner import InputSlot, OutputSlot, Poison, Runner
from campaigns.harness.session import DISTURBED_NS, DISTURBED_SHARE
from campaigns.harness.stages.floor import floor_of

from . import catalogue, waterfall
from .parity import drift, joined, parity, rms_allowed
from .request import Base, LeftOut, Parity, StackKernel, StackReport, StackRequest, Stage, Trial
from .variants import Variant

Progress = Callable[[str, str], None]
TRIES = 4
WARM_CALLS = 3
CALL_LIMIT_S = 120.0
BASE_ROUNDS = 6
EMPTY_BLOCKS = 9
MIN_PAIRS = 6
PIECES = 8192
"""Tokens that the ``pieces`` baseline reads at a time."""
ROUNDS_FACTOR = 3
FIRST = "stack 1"
Link = tuple[StackKernel, str, Parity]
"""One stage of the stack: the kernel that came in, the variant's name, and its parity."""


def measure(
    request: StackRequest, progress: Progress | None = None, should_stop: Callable[[], bool] | None = None
) -> StackReport:
    """Raises ``Infrastructure`` when it cannot be measured, ``Stopped``, or ``ProblemError`` for a wrong scenario."""
    began = time.monotonic()
    scenario = catalogue.load(request.files, request.scenario)
    said, stop = progress or (lambda stage, detail: None), should_stop or (lambda: False)
    if scenario.workload.device != "cpu":
        from .on_gpu import measure_on_gpu

        return measure_on_gpu(request, scenario, said, stop, began)
    session = Session(request, scenario, said, stop)
    try:
        return session.run(began)
    finally:
        session.close()


class Session:
    """On one core of a CPU. ``on_gpu`` has what is different on a GPU: ``prepare``, ``start``, ``check``, ``rounds``."""

    def __init__(
        self,
        request: StackRequest,
        scenario: catalogue.Scenario,
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self.request, self.scenario, self.progress, self.stop = request, scenario, progress, stop
        self.problem, self.workload = scenario.problem, scenario.workload
        self.deadline = time.monotonic() + request.time_limit_s
        self.runners: dict[str, Any] = {}
        self.empty: dict[str, Took] = {}
        self.random = random.SystemRandom()
        self.most_rms = math.inf

    def prepare(self) -> None:
        """The reference process, and a place for the inputs."""
        self.bench = Bench(self.problem, self.workload.device, self.problem.default_baseline())
        self.bench.should_stop = self.stop
        self.bench.reference_ready()
        self.stand = self.bench.stand(self.workload, 1)
        self.slot: InputSlot = self.stand.slots[0]

    def close(self) -> None:
        for runner in self.runners.values():
            runner.close()
        self.close_bench()

    def close_bench(self) -> None:
        if hasattr(self, "bench"):
            self.bench.close()

    def host(self, peaks: dict[str, float]) -> Host:
        return this_host("cpu")

    def checkpoint(self) -> None:
        if self.stop():
            raise Stopped
        if time.monotonic() > self.deadline:
            raise Infrastructure(f"the stack was not measured within {self.request.time_limit_s:.0f} s")

    def run(self, began: float) -> StackReport:
        self.progress("reference", "starting")
        self.prepare()
        bases, base = self.true_base()
        legs, left_out = self.legs(base)
        chain, refused = self.chain(base, legs)
        peaks = self.peaks()
        times = self.timed(base, chain)
        noise = waterfall.ratio(times, base.who, f"{base.who} again", 0.0)
        stages = self.stages(times, base, chain, waterfall.process_sd(noise))
        steps = self.workload.axes.get("steps", 1)
        floor_us = floor_of(self.problem, self.workload, peaks)
        amounts = {kind: self.problem.floor_value(kind, self.workload) for kind in ("bytes", "flop")}
        return StackReport(
            scenario=self.scenario.name,
            workload=self.workload.name,
            axes=self.workload.axes,
            files_sha256=files_sha256(self.request.files),
            host=self.host(peaks),
            bases=bases,
            base=base.who,
            base_us=median(times[base.who]),
            stages=stages,
            left_out=left_out,
            refused=refused,
            trial=self.trial(times, base, chain, waterfall.process_sd(noise)),
            noise=noise,
            floor_us=floor_us / steps if floor_us is not None else None,
            bytes_per_step=amounts["bytes"] / steps if amounts["bytes"] else None,
            flop_per_step=amounts["flop"] / steps if amounts["flop"] else None,
            peaks=peaks,
            seconds=round(time.monotonic() - began, 1),
        )

    def variant(
        self, who: str, base: Variant, kernels: tuple[StackKernel, ...] = (), skipped: tuple[str, ...] = ()
    ) -> Variant:
        return replace(base, who=who, kernels=kernels, skipped=skipped)

    def start(self, variant: Variant) -> Any:
        """Its process, loaded and warm. Raises ``CandidateFailure``.

        Where torch.compile is at work, a compiler lies in the sandbox, and threads may run until the warm-up is over.
        """
        built, loose = variant.built(), variant.compiled or not variant.kernels
        runner = Runner.start(variant.who, self.problem, variant.source(), built, BASELINE_LIMITS, loose, self.stop)
        self.runners[variant.who] = runner
        try:
            runner.load()
            runner.map(self.workload, [self.slot])
            if self.stand.poison is None:
                self.bench.refresh(self.stand, [self.slot])
                self.stand.poison = Poison.make(runner.slots[self.slot.name].places, {})
            for call in range(WARM_CALLS):
                limit_s = COMPILE_LIMIT_S if call == 0 and variant.compiled else CALL_LIMIT_S
                runner.block([self.slot.name], self.stand.poison, limit_s)
            if variant.kernels and loose:
                runner.trusted, runner.channel.max_threads = False, runner.channel.threads()
        except CandidateFailure:
            runner.close()
            del self.runners[variant.who]
            raise
        return runner

    def check(self, who: str) -> Parity:
        """Fresh draws through one process, each against the reference."""
        parts = []
        for _ in range(self.request.draws):
            self.checkpoint()
            self.bench.refresh(self.stand, [self.slot])
            self.runners[who].block([self.slot.name], self.stand.poison, CALL_LIMIT_S)
            parts.append(self.compared(who))
        return joined(parts)

    def compared(self, who: str) -> Parity:
        expected = self.bench.expect(self.stand, self.slot)
        outputs: OutputSlot = self.runners[who].slots[self.slot.name]
        (spec,), (place,) = self.problem.outputs, outputs.places
        out = as_float64(outputs.tensor(place), place.dtype)
        return parity(out, np.asarray(expected[spec.name]), self.problem.tolerance_for(spec, self.workload))

    def true_base(self) -> tuple[list[Base], Variant]:
        """Every way to run without kernels, and the fastest that is right: the baseline, and the ground of the stack."""
        found: dict[str, Base] = {}
        variants = {
            name: Variant(name, name == "compile", PIECES if name == "pieces" else 0, files=self.request.files)
            for name in self.request.bases
            if name != "pieces" or self.workload.axes.get("tokens", 0) > PIECES
        }
        self.ahead(variants.values())
        for name, variant in variants.items():
            self.progress("baseline", name)
            try:
                self.start(variant)
                checked = self.check(name)
                found[name] = Base(name=name, parity=checked, detail=checked.detail)
            except CandidateFailure as failure:
                found[name] = Base(name=name, detail=failure.message)
        right = [name for name, base in found.items() if base.parity is not None and base.parity.passed]
        if not right:
            raise Infrastructure(
                f"the model itself is not right: {'; '.join(f'{b.name}: {b.detail}' for b in found.values())}"
            )
        times = self.rounds(right, BASE_ROUNDS)
        for name in right:
            base = found[name]
            found[name] = Base(name=name, time_us=median(times[name]), parity=base.parity)
        fastest = min(right, key=lambda name: median(times[name]))
        of_fastest = found[fastest].parity
        assert of_fastest is not None
        self.most_rms = rms_allowed(of_fastest)
        for name in [n for n in self.runners if n != fastest]:
            self.runners.pop(name).close()
        return list(found.values()), variants[fastest]

    def legs(self, base: Variant) -> tuple[list[tuple[StackKernel, Parity]], list[LeftOut]]:
        """Each kernel alone in the model: those that are right, and why the others are not."""
        good: list[tuple[StackKernel, Parity]] = []
        left_out = []
        known = [k for k in self.request.kernels if k.operator in self.scenario.operators]
        self.ahead(self.variant("alone", base, (kernel,)) for kernel in known)
        for kernel in self.request.kernels:
            self.progress("kernel alone", kernel.label)
            checked, why = self.tried(self.variant(FIRST if not good else "alone", base, (kernel,)))
            if checked is None:
                self.progress("left out", f"{kernel.operator}: {why}")
                left_out.append(LeftOut(kernel=kernel.id, operator=kernel.operator, label=kernel.label, why=why))
                continue
            good.append((kernel, checked))
            if len(good) > 1:  # the first one alone is the stack's first stage, and stays
                self.runners.pop("alone").close()
        return good, left_out

    def to_come(self, base: Variant, kernels: Sequence[StackKernel]) -> Iterator[Variant]:
        """All that will be started once these are right one by one, unless they drift together."""
        for count in range(2, len(kernels) + 1):
            yield self.variant("stack", base, tuple(kernels[:count]))
        yield self.variant("again", base)
        for place, kernel in enumerate(kernels):
            yield self.variant("left out", base, tuple(kernels[:place]), (kernel.operator,))

    def ahead(self, variants: Iterable[Variant]) -> None:
        """These will be asked for soon. On a CPU each starts in its turn: they would disturb each other."""

    def tried(self, variant: Variant) -> tuple[Parity | None, str]:
        """Its parity when it runs and is right; else None and why not, and its process is gone."""
        self.checkpoint()
        try:
            if unknown := [k.operator for k in variant.kernels if k.operator not in self.scenario.operators]:
                return None, f"the scenario has no operator {unknown[0]}"
            self.start(variant)
            checked = self.check(variant.who)
            why = checked.detail or drift(checked, self.most_rms)
            if checked.passed and not why:
                return checked, ""
        except CandidateFailure as failure:
            why = failure.message
        if runner := self.runners.pop(variant.who, None):
            runner.close()
        return None, why

    def chain(self, base: Variant, legs: list[tuple[StackKernel, Parity]]) -> tuple[list[Link], str]:
        """The stack as it grows, and why it was refused where each leg passed and the sum fails."""
        done = [(kernel, FIRST, checked) for kernel, checked in legs[:1]]
        self.ahead(self.to_come(base, [kernel for kernel, _ in legs]))
        for kernel, _ in legs[1:]:
            self.progress("stack", f"{len(done) + 1} of {len(legs)}: {kernel.label}")
            who, kernels = f"stack {len(done) + 1}", (*(k for k, _, _ in done), kernel)
            checked, why = self.tried(self.variant(who, base, kernels))
            if checked is None:
                together = ", ".join(k.label for k in kernels)
                return done, f"the stack drifts: {together} are right one by one, and not together: {why}"
            done.append((kernel, who, checked))
        return done, ""

    def timed(self, base: Variant, chain: list[Link]) -> dict[str, list[float]]:
        """Interleaved rounds of baseline, a second process of it, the growing stack, and each stage's step before without
        the operator that is swapped next: what it takes less is that operator's share."""
        wanted = [base.who, f"{base.who} again", *(who for _, who, _ in chain)]
        for name in [n for n in self.runners if n not in wanted]:
            self.runners.pop(name).close()
        try:
            self.start(self.variant(f"{base.who} again", base))
            for place, (kernel, who, _) in enumerate(chain):
                before = tuple(k for k, _, _ in chain[:place])
                self.start(self.variant(f"{who} left out", base, before, (kernel.operator,)))
                wanted.append(f"{who} left out")
        except CandidateFailure as failure:
            raise Infrastructure(f"the model without kernels: {failure.message}") from failure
        self.progress("timing", f"{len(wanted)} processes, {self.request.rounds} rounds")
        return self.rounds(wanted, self.request.rounds, checked=[who for _, who, _ in chain])

    def rounds(self, names: list[str], rounds: int, checked: list[str] | None = None) -> dict[str, list[float]]:
        """µs of one step by variant and round, all on one core that nothing else times. Each round has new inputs and
        another order; the outputs of the timed calls are checked."""
        times: dict[str, list[float]] = {name: [] for name in names}
        steps = self.workload.axes.get("steps", 1)
        with self.on_one_core(names):
            for _ in range(ROUNDS_FACTOR * rounds):
                self.checkpoint()
                self.bench.refresh(self.stand, [self.slot])
                for name in self.random.sample(names, len(names)):
                    times[name].append(self.once_us(name) / steps)
                for name in checked or []:
                    found = self.compared(name)
                    if not found.passed:
                        raise Infrastructure(
                            f"{name}: right when it was checked, wrong in a timed call: {found.detail}"
                        )
                if undisturbed(times) >= rounds:
                    break
        if (pairs := undisturbed(times)) < MIN_PAIRS:
            raise Infrastructure(f"this machine is too busy to measure: {pairs} rounds in which nothing was disturbed")
        return times

    @contextmanager
    def on_one_core(self, names: list[str]) -> Iterator[None]:
        """As the harness times candidates: the reference process is there, too, so that all find its inputs in the same
        caches; waiting for the core does not count against the limit."""
        assert self.bench.reference is not None
        channels = [self.bench.reference, *(self.runners[name].channel for name in names)]
        allowed, began = os.sched_getaffinity(0), time.monotonic()
        with cores.reserved(self.stop, cores.WAIT_S) as core:
            self.deadline += time.monotonic() - began
            for channel in channels:
                cores.pin(channel.pid, {core})
                channel.urgent = True
            try:
                for name in names:
                    took = [self.runners[name].block([], None, CALL_LIMIT_S) for _ in range(EMPTY_BLOCKS)]
                    self.empty[name] = Took(*(round(statistics.median(clock)) for clock in zip(*took, strict=True)))
                yield
            except CandidateFailure as failure:
                raise Infrastructure(f"while it was timed: {failure.message}") from failure
            finally:
                for channel in channels:
                    channel.urgent = False
                    if not channel.closed:
                        cores.pin(channel.pid, allowed)

    def once_us(self, who: str) -> float:
        """One call in µs, or NaN when each try took longer than it used the processor."""
        for _ in range(TRIES):
            try:
                took = self.runners[who].block([self.slot.name], self.stand.poison, CALL_LIMIT_S)
            except CandidateFailure as failure:
                raise Infrastructure(f"{who}: {failure.message}") from failure
            wall, cpu = took.wall_ns - self.empty[who].wall_ns, took.cpu_ns - self.empty[who].cpu_ns
            if wall - cpu <= DISTURBED_NS + DISTURBED_SHARE * took.wall_ns:
                return max(1.0, wall) / 1e3
        return math.nan

    def stages(self, times: dict[str, list[float]], base: Variant, chain: list[Link], sd: float) -> list[Stage]:
        found: list[Stage] = []
        before = base.who
        for kernel, who, checked in chain:
            part = waterfall.share(times, before, f"{who} left out", sd)
            over = waterfall.ratio(times, base.who, who, sd)
            gain = waterfall.ratio(times, before, who, sd)
            found.append(waterfall.stage(kernel, median(times[who]), median(times[before]), over, gain, part, checked))
            before = who
        return found

    def trial(self, times: dict[str, list[float]], base: Variant, chain: list[Link], sd: float) -> Trial | None:
        """The tried kernels together, over the step before the first of them."""
        if not self.request.tried:
            return None
        tried = [(kernel, who) for kernel, who, _ in chain if kernel.id in self.request.tried]
        if not tried:
            return waterfall.trial([], None)
        before = [who for kernel, who, _ in chain if kernel.id not in self.request.tried]
        gain = waterfall.ratio(times, before[-1] if before else base.who, tried[-1][1], sd)
        return waterfall.trial([kernel for kernel, _ in tried], gain)

    def peaks(self) -> dict[str, float]:
        """What this core copies at most, over as many bytes as a step reads: a small step may live in a cache."""
        amount = self.problem.floor_value("bytes", self.workload)
        if amount is None:
            return {}
        half = np.ones(max(1, int(amount / self.workload.axes.get("steps", 1)) // 2), np.uint8)
        target = np.empty_like(half)
        best = math.inf
        for _ in range(12):
            began = time.perf_counter()
            np.copyto(target, half)
            best = min(best, time.perf_counter() - began)
        return {"copy_bytes_per_s": 2 * half.size / best}


def undisturbed(times: dict[str, list[float]]) -> int:
    """Rounds in which every variant was measured."""
    return sum(not any(map(math.isnan, row)) for row in zip(*times.values(), strict=True))


def median(times: list[float]) -> float:
    return statistics.median(t for t in times if not math.isnan(t))
