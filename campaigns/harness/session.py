"""A timing session: baseline, incumbent, a second process of the incumbent, and candidate, interleaved.

Each round gives every workload new inputs and lets each runner do a block of N and a block of 2N calls, each call on
inputs that it has not seen. What an empty block costs is taken off. A call of a millisecond or more is a block of its
own. A block that took longer than it used the processor was disturbed, and is done again on new inputs.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import cores
from .bench import Bench
from .channel import Took
from .choosing import chooses, longer
from .comparing import compare_slot
from .errors import CandidateFailure, Infrastructure
from .gate import clears, hopeless
from .lane import Lane
from .midway import Watch
from .outside import finding_for
from .problem import Workload
from .recall import look_for_memory
from .report import Finding, Ratio
from .runner import InputSlot, Runner
from .statistics import Estimate, centre_of, combine

if TYPE_CHECKING:
    from .stages.base import Evaluation

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
SOMEWHERE_FASTER = 0.05
"""As a logarithm."""
PROCESS_SD = 0.006
"""How much the time of the same code differs from process to process (where its memory lies), as a share. Assumed, not
measured: see docs/harness.md. No number of rounds in one process shows it."""
DISTURBED_NS, DISTURBED_SHARE = 50_000, 0.03
TRIES = 4
EMPTY_BLOCKS = 9
ENOUGH_BLOCKS = 24
SPOT_CHECK_S = 0.02
MIN_CALL_LIMIT_S = 2.0
SLOWER_LIMIT = 30.0


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
    """All processes but the baseline's are started, loaded and warmed in an order of chance: a kernel that knows whether it
    is the candidate or the one to beat could be slow as the latter, and be kept again and again.
    """

    def __init__(self, evaluation: Evaluation, bench: Bench, candidate: Runner | None, stage: str) -> None:
        """``candidate``: its process, where it has one already; else a fresh one is started."""
        self.evaluation, self.bench, self.stage = evaluation, bench, stage
        self.problem = bench.problem
        assert bench.baseline is not None
        made = {} if candidate is None else {CANDIDATE: candidate}
        against = evaluation.incumbent is not None and evaluation.incumbent_built is not None
        names = [BASELINE, *((INCUMBENT, SECOND) if against else ()), CANDIDATE]
        self.by_chance = names[1:]
        """All but the baseline, in an order of chance: the same throughout, since it says nothing of who is who."""
        evaluation.random.shuffle(self.by_chance)
        for who in self.by_chance:
            if who not in made:
                made[who] = self.start(who)
        self.runners = {who: bench.baseline if who == BASELINE else made[who] for who in names}
        self.candidate = self.runners[CANDIDATE]
        self.empty: dict[str, Took] = {}
        self.blocks: dict[str, list[bool]] = {who: [] for who in self.runners}
        self.first_tries: dict[str, list[bool | None]] = {who: [] for who in self.runners}
        """By workload and round, in the same order for all: whether the first try was disturbed."""
        self.lanes: list[Lane] = []
        self.checked = 0
        self.core = -1
        self.recall: dict[str, float] = {}
        """By workload, the candidate's time on seen values over that on new ones."""
        self.midway: dict[str, float] = {}
        self.watch = Watch(self)

    def start(self, who: str) -> Runner:
        if who == CANDIDATE:
            return self.evaluation.start_candidate()
        assert self.evaluation.incumbent is not None
        assert self.evaluation.incumbent_built is not None
        return self.evaluation.start_runner(who, self.evaluation.incumbent, self.evaluation.incumbent_built)

    @property
    def incumbents(self) -> list[str]:
        return [who for who in (INCUMBENT, SECOND) if who in self.runners]

    def run(self, workloads: Sequence[Workload]) -> Outcome:
        try:
            for who in (BASELINE, *self.by_chance):
                self.guarded(self.runners[who], self.runners[who].load)
            with self.on_one_core():
                self.lanes = [self.prepare(workload) for workload in workloads]
                outcome = self.rounds()
                self.look_outside_the_clock()
                self.midway = self.watch.finish()
                self.recall = look_for_memory(self)
                return outcome
        finally:
            for who in self.incumbents:
                self.evaluation.close_runner(self.runners[who])

    @contextmanager
    def on_one_core(self) -> Iterator[None]:
        """All runners on one core that no other evaluation times; waiting for it does not count against the limit.

        The reference process is there, too: what it wrote then lies in that core's caches, for every runner alike.
        """
        assert self.bench.reference is not None
        channels = [self.bench.reference, *(runner.channel for runner in self.runners.values())]
        allowed, began = os.sched_getaffinity(0), time.monotonic()
        with cores.reserved(self.evaluation.should_stop, cores.WAIT_S) as self.core:
            self.evaluation.deadline += time.monotonic() - began
            for channel in channels:
                cores.pin(channel.pid, {self.core})
                channel.urgent = True
            try:
                yield
            finally:
                for channel in channels:
                    channel.urgent = False
                    if not channel.closed:
                        cores.pin(channel.pid, allowed)

    def guarded(self, runner: Runner, action: object, *arguments: object) -> object:
        """A failure of any other runner than the candidate is none of the candidate's."""
        try:
            return action(*arguments)  # type: ignore[operator]
        except CandidateFailure as failure:
            if runner is self.candidate:
                raise
            raise Infrastructure(f"{runner.who}: {failure.message}") from failure

    def block(self, who: str, lane: Lane, slots: Sequence[InputSlot]) -> Took:
        runner = self.runners[who]
        limit_s = 60.0 if who == BASELINE else self.evaluation.block_limit_s(lane.limit_s)
        took = self.guarded(runner, runner.block, [s.name for s in slots], lane.stand.poison, limit_s)
        assert isinstance(took, Took)
        lane.outside_ns += took.outside_ns
        return took

    def measure_empty(self, who: str, lane: Lane) -> None:
        """What a block costs without a call in it, by both clocks."""
        took = [self.block(who, lane, []) for _ in range(EMPTY_BLOCKS)]
        self.empty[who] = Took(*(round(statistics.median(clock)) for clock in zip(*took, strict=True)))

    def empty_block(self) -> Took:
        """What every runner's blocks cost without a call. All run the same loop; the candidate is not asked, since it
        would gain by a dear one."""
        others = [took for who, took in self.empty.items() if who != CANDIDATE]
        return Took(*(round(statistics.median(clock)) for clock in zip(*others, strict=True)))

    def net_ns(self, took: Took) -> float:
        """Nanoseconds of the calls in a block, or NaN when it took longer than it used the processor."""
        empty = self.empty_block()
        cpu, wall = took.cpu_ns - empty.cpu_ns, took.wall_ns - empty.wall_ns
        disturbed = wall - cpu > DISTURBED_NS + DISTURBED_SHARE * took.wall_ns
        return math.nan if disturbed else max(1.0, wall)

    def prepare(self, workload: Workload) -> Lane:
        """Warm every runner on two draws, and choose how many calls make a block."""
        self.evaluation.checkpoint()
        lane = Lane(self.bench.stand(workload, 2))
        slots = lane.stand.slots[:2]
        self.bench.refresh(lane.stand, slots)
        quickest = math.inf
        for who in (BASELINE, *self.by_chance):
            runner = self.runners[who]
            self.guarded(runner, runner.map, workload, slots)
            if who not in self.empty:
                self.measure_empty(who, lane)
            took_ns = min(self.block(who, lane, [slot]).wall_ns for slot in slots) - self.empty[who].wall_ns
            if who in (INCUMBENT, BASELINE):
                lane.limit_s = max(MIN_CALL_LIMIT_S, SLOWER_LIMIT * MAX_CALLS * took_ns / 1e9)
            quickest = min(quickest, max(1000.0, took_ns))
        lane.calls = 1 if quickest >= SINGLE_NS else min(MAX_CALLS, math.ceil(BLOCK_NS / quickest))
        count = 1 if quickest >= SINGLE_NS else 3 * self.fitting(lane)
        lane.slots = self.bench.stand(workload, count).slots[:count]
        for who in (BASELINE, *self.by_chance):
            self.guarded(self.runners[who], self.runners[who].map, workload, lane.slots)
        lane.times = {who: [] for who in self.runners}
        lane.outside = {who: [] for who in self.runners}
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
        outcome = None
        for number in range(MAX_ROUNDS):
            for index, lane in enumerate(self.lanes):
                self.evaluation.checkpoint()
                self.round(lane, ORDERS[(number + index + offset) % len(ORDERS)])
            self.look_at_clocks()
            pairs = min(lane.pairs() for lane in self.lanes)
            if pairs == 0:
                continue
            outcome = self.outcome(number + 1, self.verdict_so_far(pairs))
            self.evaluation.progress(self.stage, self.sentence(outcome))
            if outcome.stopped or (pairs >= MIN_ROUNDS and time.monotonic() > until):
                break
        if outcome is None or (pairs < MIN_ROUNDS and not outcome.stopped):
            share = self.disturbed()[1]
            raise Infrastructure(f"this machine is too busy to measure: {share:.0%} of the blocks were disturbed")
        return outcome

    def disturbed(self) -> tuple[float, float]:
        """The share of disturbed blocks: of the candidate, and of the others."""
        share = {who: 1 - statistics.fmean(good) for who, good in self.blocks.items() if good}
        others = [s for who, s in share.items() if who != CANDIDATE]
        return share.get(CANDIDATE, 0.0), statistics.fmean(others or [0.0])

    def look_at_clocks(self) -> None:
        """A busy machine disturbs every runner; a candidate that alone is disturbed waits for somebody else's work."""
        mine, others = self.disturbed()
        always = len(self.blocks[CANDIDATE]) >= ENOUGH_BLOCKS and mine >= 0.95 and others <= 0.5
        if not always and not chooses(self.first_tries, CANDIDATE, longer(self.lanes, CANDIDATE)):
            return
        text = f"in {mine:.0%} of its blocks it took more time than it used the processor: it sleeps or waits"
        text += (
            "" if always else f"; of the other runners it was {others:.0%}, and blocks like these are measured again"
        )
        data = {"candidate": mine, "others": others}
        self.evaluation.add_finding(Finding(rule="clocks-disagree", severity="block", evidence=text, data=data))
        if always or "clocks-disagree" not in self.evaluation.request.dismissed:
            raise CandidateFailure("flagged", text, rule="clocks-disagree")

    def look_outside_the_clock(self) -> None:
        finding = finding_for(CANDIDATE, {lane.stand.workload.name: lane.outside for lane in self.lanes})
        if finding is not None:
            self.evaluation.add_finding(finding)
            if finding.rule not in self.evaluation.request.dismissed:
                raise CandidateFailure("flagged", finding.evidence, rule=finding.rule)

    def outside_us(self) -> dict[str, float]:
        """Medians by runner, of one workload's blocks in a round."""
        found = {who: [ns for lane in self.lanes for ns in lane.outside[who] if ns == ns] for who in self.runners}
        return {who: round(statistics.median(ns) / 1e3, 1) for who, ns in found.items() if ns}

    def round(self, lane: Lane, order: Sequence[int]) -> None:
        """New inputs for all slots, then each runner once over them, and a look at what the candidate wrote."""
        self.refresh(lane)
        names = [BASELINE, *self.by_chance]
        for who in [names[i] for i in order if i < len(names)]:
            lane.times[who].append(took_ns := self.time(who, lane))
            lane.outside[who].append(math.nan if math.isnan(took_ns) else lane.outside_ns)
        self.check(lane)

    def refresh(self, lane: Lane) -> None:
        """New values, and another order of the calls: what comes next cannot be known, nor fetched ahead."""
        self.evaluation.random.shuffle(lane.slots)
        self.bench.renew(lane.stand, lane.slots)
        lane.generation += 1

    def time(self, who: str, lane: Lane) -> float:
        """Nanoseconds of one call; NaN when every try was disturbed. Each try is on new inputs."""
        looked = who == CANDIDATE and self.watch.looks_now(lane)
        if looked:
            self.refresh(lane)
        for attempt in range(TRIES):
            if attempt:
                self.check(lane)
                self.refresh(lane)
            lane.outside_ns = 0.0
            took_ns = self.time_once(who, lane)
            lane.ran[who] = lane.generation
            self.blocks[who].append(not math.isnan(took_ns))
            if not attempt:
                self.first_tries[who].append(None if looked else math.isnan(took_ns))
            if not math.isnan(took_ns):
                return took_ns
        return math.nan

    def time_once(self, who: str, lane: Lane) -> float:
        if lane.single:
            return self.net_ns(self.block(who, lane, lane.slots))
        short, long = lane.slots[: lane.calls], lane.slots[lane.calls :]
        blocks = [short, long]
        self.evaluation.random.shuffle(blocks)
        return sum(self.net_ns(self.block(who, lane, slots)) for slots in blocks) / (3 * lane.calls)

    def check(self, lane: Lane) -> None:
        """The outputs of the candidate's last calls: all against the baseline's, and one, chosen now, against the
        reference. Done before their inputs change."""
        if lane.ran.get(CANDIDATE) != lane.generation or lane.checked == lane.generation:
            return
        if lane.ran.get(BASELINE) != lane.generation:
            self.bench.run_baseline(lane.stand, lane.slots)
            lane.ran[BASELINE] = lane.generation
        lane.checked = lane.generation
        spot = self.evaluation.random.choice(lane.slots)
        for slot in lane.slots:
            by_reference = slot is spot and (lane.stand.expect_s < SPOT_CHECK_S or lane.generation == 1)
            expected = self.bench.expect(lane.stand, slot) if by_reference else None
            found = compare_slot(self.evaluation.problem, self.bench, lane.stand, self.candidate, slot, expected)
            if not found.passed:
                raise CandidateFailure("incorrect", f"{lane.stand.workload.name}: in a timed call, {found.detail}")
            self.checked += 1

    def verdict_so_far(self, rounds: int) -> str:
        """Why to stop now, or nothing."""
        if not self.incumbents or rounds < QUICK_ROUNDS:
            return ""
        if rounds < MIN_ROUNDS:
            overall = combine([centre_of(lane.log_ratios(self.incumbents, CANDIDATE)) for lane in self.lanes])
            slower = math.exp(overall.hi) < HOPELESS_AFTER_QUICK and not somewhere_faster(self)
            return "clearly slower" if slower else ""
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
        times = {**lane.times, INCUMBENT: [t for who in self.incumbents for t in lane.times[who]]}
        good = {who: [t for t in values if not math.isnan(t)] for who, values in times.items()}
        return {who: statistics.median(values) / 1e3 for who, values in good.items() if values}

    def sentence(self, outcome: Outcome) -> str:
        over = outcome.over_incumbent or outcome.speedup
        assert over is not None
        what = "over the incumbent" if outcome.over_incumbent else "over the baseline"
        return f"round {outcome.rounds}: {over.value:.3f}× {what} ({over.lo:.3f} to {over.hi:.3f})"


def somewhere_faster(session: Session | Any) -> bool:
    """Whether a workload seems faster: where the problem has an axis to sweep, a win on a part of it is looked for."""
    if session.problem.sweep is None:
        return False
    gains = (statistics.median(lane.log_ratios(session.incumbents, CANDIDATE)) for lane in session.lanes)
    return any(gain > SOMEWHERE_FASTER for gain in gains)


__all__ = ["BASELINE", "CANDIDATE", "INCUMBENT", "SECOND", "Outcome", "Session"]
