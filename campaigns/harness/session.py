"""A timing session: baseline, incumbent, a second process of the incumbent, and candidate, interleaved.

Each round gives every workload new inputs and lets each runner do a block of N and a block of 2N calls, each call on
inputs that it has not seen. The slope between the two is the time of a call, whatever the runner says and whatever
each block costs once. A call of a millisecond or more is a block of its own, less the cost of an empty block.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .bench import Bench, Stand
from .errors import CandidateFailure, Infrastructure
from .gate import clears, hopeless
from .problem import Workload
from .report import Ratio
from .runner import InputSlot, Runner
from .stages.base import Evaluation
from .stages.correctness import against, compare_slot
from .statistics import Estimate, centre_of, combine

BASELINE, INCUMBENT, SECOND, CANDIDATE = "baseline", "incumbent", "incumbent again", "candidate"
ORDERS = ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))
"""A Williams square: each runner is at each place, and after each other one, equally often."""
BLOCK_NS = 1_500_000
SINGLE_NS = 1_000_000
MAX_CALLS = 16
MAX_SLOT_BYTES = 256 << 20
QUICK_ROUNDS, MIN_ROUNDS, MAX_ROUNDS = 3, 6, 16
BUDGET_S = 6.0
HOPELESS_AFTER_QUICK = 0.95
PROCESS_SD = 0.006
"""How much the time of the same code differs from process to process (where its memory lies), as a share: measured,
see docs/harness.md. No number of rounds in one process shows it."""
SPOT_CHECK_S = 0.02
MIN_CALL_LIMIT_S = 2.0
SLOWER_LIMIT = 30.0


@dataclass
class Lane:
    """One workload in a session: its slots, block size, and times by runner and round in ns a call."""

    stand: Stand
    calls: int = 1
    slots: list[InputSlot] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    limit_s: float = 60.0

    @property
    def single(self) -> bool:
        return len(self.slots) == 1

    def log_ratios(self, numerator: Sequence[str], denominator: str) -> list[float]:
        """By round: log of the numerators' geometric mean over the denominator's time."""
        rounds = len(self.times[denominator])
        return [
            sum(math.log(self.times[who][r]) for who in numerator) / len(numerator)
            - math.log(self.times[denominator][r])
            for r in range(rounds)
        ]


@dataclass(frozen=True)
class Outcome:
    """Ratios with their intervals. ``by_workload`` has (speed-up, over the incumbent, noise) of each."""

    speedup: Ratio | None
    over_incumbent: Ratio | None
    noise: Ratio | None
    by_workload: dict[str, tuple[Ratio, Ratio | None, Ratio | None]]
    times_us: dict[str, dict[str, float]]
    rounds: int
    stopped: str


class Session:
    def __init__(self, evaluation: Evaluation, bench: Bench, candidate: Runner, stage: str) -> None:
        self.evaluation, self.bench, self.stage = evaluation, bench, stage
        assert bench.baseline is not None
        self.runners = {BASELINE: bench.baseline}
        self.candidate = candidate
        if evaluation.incumbent is not None and evaluation.incumbent_built is not None:
            for who in (INCUMBENT, SECOND):
                self.runners[who] = evaluation.start_runner(who, evaluation.incumbent, evaluation.incumbent_built)
        self.runners[CANDIDATE] = candidate
        self.empty_ns: dict[str, float] = {}
        self.lanes: list[Lane] = []
        self.checked = 0

    @property
    def incumbents(self) -> list[str]:
        return [who for who in (INCUMBENT, SECOND) if who in self.runners]

    def run(self, workloads: Sequence[Workload]) -> Outcome:
        for runner in self.runners.values():
            self.guarded(runner, runner.load)
        try:
            self.lanes = [self.prepare(workload) for workload in workloads]
            return self.rounds()
        finally:
            for who in self.incumbents:
                self.evaluation.close_runner(self.runners[who])

    def guarded(self, runner: Runner, action: object, *arguments: object) -> object:
        """A failure of any other runner than the candidate is none of the candidate's."""
        try:
            return action(*arguments)  # type: ignore[operator]
        except CandidateFailure as failure:
            if runner is self.candidate:
                raise
            raise Infrastructure(f"{runner.who}: {failure.message}") from failure

    def block(self, who: str, lane: Lane, slots: Sequence[InputSlot]) -> int:
        runner = self.runners[who]
        limit_s = 60.0 if who == BASELINE else self.evaluation.block_limit_s(lane.limit_s)
        took = self.guarded(runner, runner.block, [s.name for s in slots], lane.stand.poison, limit_s)
        if runner is self.candidate:
            self.evaluation.check_threads(runner)
        assert isinstance(took, int)
        return took

    def prepare(self, workload: Workload) -> Lane:
        """Warm every runner on two draws, and choose how many calls make a block."""
        self.evaluation.checkpoint()
        lane = Lane(self.bench.stand(workload, 2))
        slots = lane.stand.slots[:2]
        self.bench.refresh(lane.stand, slots)
        quickest = math.inf
        for who, runner in self.runners.items():
            self.guarded(runner, runner.map, workload, slots)
            if who not in self.empty_ns:
                self.empty_ns[who] = statistics.median(self.block(who, lane, []) for _ in range(9))
            took = [self.block(who, lane, [slot]) - self.empty_ns[who] for slot in slots]
            if who in (INCUMBENT, BASELINE):
                lane.limit_s = max(MIN_CALL_LIMIT_S, SLOWER_LIMIT * MAX_CALLS * took[-1] / 1e9)
            quickest = min(quickest, max(1000.0, took[-1]))
        lane.calls = 1 if quickest >= SINGLE_NS else min(MAX_CALLS, math.ceil(BLOCK_NS / quickest))
        count = 1 if quickest >= SINGLE_NS else 3 * self.fitting(lane)
        lane.slots = self.bench.stand(workload, count).slots[:count]
        for runner in self.runners.values():
            self.guarded(runner, runner.map, workload, lane.slots)
        lane.times = {who: [] for who in self.runners}
        return lane

    def fitting(self, lane: Lane) -> int:
        """So few calls that the slots of one workload stay within bounds of memory."""
        places = lane.stand.slots[0].places + self.candidate.slots[lane.stand.slots[0].name].places
        nbytes = sum(p.nbytes for p in places)
        lane.calls = max(1, min(lane.calls, MAX_SLOT_BYTES // (3 * nbytes)))
        return lane.calls

    def rounds(self) -> Outcome:
        until = time.monotonic() + BUDGET_S
        offset = self.evaluation.random.randrange(len(ORDERS))
        for number in range(MAX_ROUNDS):
            for index, lane in enumerate(self.lanes):
                self.evaluation.checkpoint()
                self.round(lane, ORDERS[(number + index + offset) % len(ORDERS)])
            outcome = self.outcome(number + 1, self.verdict_so_far(number + 1))
            self.evaluation.progress(self.stage, self.sentence(outcome))
            if outcome.stopped or (number + 1 >= MIN_ROUNDS and time.monotonic() > until):
                break
        return outcome

    def round(self, lane: Lane, order: Sequence[int]) -> None:
        """New inputs for all slots, then each runner once over them, then a look at what the candidate wrote."""
        self.bench.refresh(lane.stand, lane.slots)
        names = list(self.runners)
        for who in [names[i] for i in order if i < len(names)]:
            lane.times[who].append(self.time(who, lane))
        self.check(lane)

    def time(self, who: str, lane: Lane) -> float:
        """Nanoseconds of one call."""
        if lane.single:
            return max(1.0, self.block(who, lane, lane.slots) - self.empty_ns[who])
        short, long = lane.slots[: lane.calls], lane.slots[lane.calls :]
        first, second = (short, long) if self.evaluation.random.random() < 0.5 else (long, short)
        took = {len(s): self.block(who, lane, s) for s in (first, second)}
        return self.per_call_ns(who, took[lane.calls], took[2 * lane.calls], lane.calls)

    def per_call_ns(self, who: str, short_ns: int, long_ns: int, calls: int) -> float:
        return max(1.0, (long_ns - short_ns) / calls)

    def check(self, lane: Lane) -> None:
        """The outputs of the timed calls: all against the baseline's, and one, chosen now, against the reference."""
        spot = self.evaluation.random.choice(lane.slots)
        for slot in lane.slots:
            by_reference = slot is spot and (lane.stand.expect_s < SPOT_CHECK_S or len(lane.times[CANDIDATE]) == 1)
            expected = self.bench.expect(lane.stand, slot) if by_reference else None
            found = compare_slot(self.evaluation, self.bench, lane.stand, self.candidate, slot, expected)
            if not found.passed:
                raise CandidateFailure("incorrect", f"{lane.stand.workload.name}: in a timed call, {found.detail}")
            self.checked += 1

    def verdict_so_far(self, rounds: int) -> str:
        """Why to stop now, or nothing."""
        if not self.incumbents or rounds < QUICK_ROUNDS:
            return ""
        if rounds < MIN_ROUNDS:
            overall = [
                statistics.fmean(lane.log_ratios(self.incumbents, CANDIDATE)[r] for lane in self.lanes)
                for r in range(rounds)
            ]
            return "clearly slower" if math.exp(max(overall)) < HOPELESS_AFTER_QUICK else ""
        outcome = self.outcome(rounds, "")
        assert outcome.over_incumbent is not None
        if clears(outcome.over_incumbent, outcome.noise):
            return "clearly faster"
        return "not beyond the noise" if hopeless(outcome.over_incumbent, outcome.noise) else ""

    def estimate(self, numerator: Sequence[str], denominator: str, processes: float) -> list[Estimate]:
        """One estimate a workload; ``processes`` is the variance of the ratio in units of one process's."""
        sd = PROCESS_SD * math.sqrt(processes)
        return [centre_of(lane.log_ratios(numerator, denominator)).widened(sd) for lane in self.lanes]

    def outcome(self, rounds: int, stopped: str) -> Outcome:
        speedups = self.estimate([BASELINE], CANDIDATE, 2.0)
        overs = self.estimate(self.incumbents, CANDIDATE, 1.5) if self.incumbents else []
        noises = self.estimate([INCUMBENT], SECOND, 0.0) if len(self.incumbents) == 2 else []
        by_workload = {
            lane.stand.workload.name: (
                speedups[i].ratio(),
                overs[i].ratio() if overs else None,
                noises[i].ratio() if noises else None,
            )
            for i, lane in enumerate(self.lanes)
        }
        return Outcome(
            speedup=combine(speedups).ratio(),
            over_incumbent=combine(overs).ratio() if overs else None,
            noise=combine(noises).ratio() if noises else None,
            by_workload=by_workload,
            times_us={lane.stand.workload.name: self.medians_us(lane) for lane in self.lanes},
            rounds=rounds,
            stopped=stopped,
        )

    def medians_us(self, lane: Lane) -> dict[str, float]:
        times = {who: statistics.median(values) / 1e3 for who, values in lane.times.items()}
        if len(self.incumbents) == 2:
            times[INCUMBENT] = statistics.median(lane.times[INCUMBENT] + lane.times[SECOND]) / 1e3
        return times

    def sentence(self, outcome: Outcome) -> str:
        over = outcome.over_incumbent or outcome.speedup
        assert over is not None
        what = "over the incumbent" if outcome.over_incumbent else "over the baseline"
        return f"round {outcome.rounds}: {over.value:.3f}× {what} ({over.lo:.3f} to {over.hi:.3f})"


__all__ = ["BASELINE", "CANDIDATE", "INCUMBENT", "SECOND", "Outcome", "Session", "against"]
