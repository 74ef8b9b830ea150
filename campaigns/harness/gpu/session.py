"""A timing session on a GPU: baseline, incumbent, a second process of the incumbent and candidate, interleaved.

Each runner has CUDA graphs of N and of 2N calls over rotated slots. A round gives every runner new inputs, then replays
each runner's longer graph in turn, then new inputs again and the shorter ones. The difference of the two, by the
evaluator's own clock, is the time of N calls, whatever a runner says; the device's events must agree with it.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..errors import CandidateFailure, Infrastructure
from ..gate import MIN_NOISE_GPU, clears, hopeless
from ..problem import Workload
from ..report import Finding, Ratio
from ..session import BASELINE, CANDIDATE, INCUMBENT, ORDERS, SECOND, Outcome, somewhere_faster
from ..statistics import Estimate, centre_of, combine
from .bench import BASELINE_CALL_LIMIT_S, GpuBench
from .channel import GpuChannel, settled
from .lane import LONG, ONCE, RENEWED, SHORT, Lane, calls_in_block, order, slot_count
from .recall import look_for_memory
from .runner import COMPILE_LIMIT_S, PRIME, RENEW_LIMIT_S, GpuRunner
from .work import total_bytes

QUICK_ROUNDS, MIN_ROUNDS, MAX_ROUNDS = 3, 6, 20
BUDGET_S = 5.0
HOPELESS_AFTER_QUICK = 0.95
CLEARLY_SLOWER = "clearly slower"
CLOCKS_DISAGREE, WORK_HIDDEN = 0.02, 0.05
SLOWER_LIMIT = 30.0
EXACT_SHARE = 0.5
MIN_BLOCK_LIMIT_S = 5.0


def process_sd(call_us: float) -> float:
    """How much the time of the same code differs from process to process, where its memory lies, as a share.

    No number of rounds in one process shows it. Measured by A/A: docs/results/harness-h200.md.
    """
    return 0.0008 + 0.012 / max(2.0, call_us)


class Hooks(Protocol):
    """What a session tells whoever asked for it."""

    @property
    def progress(self) -> Callable[[str, str], None]: ...

    def checkpoint(self) -> None: ...

    def add_finding(self, finding: Finding) -> None: ...


class GpuSession:
    """``runners`` by ``BASELINE``, ``INCUMBENT``, ``SECOND``, ``CANDIDATE``; not all need be there. All are loaded."""

    def __init__(self, hooks: Hooks, bench: GpuBench, runners: dict[str, GpuRunner], stage: str) -> None:
        self.hooks, self.bench, self.runners, self.stage = hooks, bench, runners, stage
        self.problem = bench.problem
        self.lanes: list[Lane] = []
        self.workloads = 1
        self.checked = 0
        self.random = random.Random(bench.seed())
        self.min_rounds, self.max_rounds, self.budget_s = MIN_ROUNDS, MAX_ROUNDS, BUDGET_S
        self.seconds: dict[str, float] = {}
        self.recall: dict[str, dict[str, Any]] = {}
        """By workload and runner, the logarithms of time on new values over time on seen ones."""

    @property
    def incumbents(self) -> list[str]:
        return [who for who in (INCUMBENT, SECOND) if who in self.runners]

    def run(self, workloads: Sequence[Workload]) -> Outcome:
        began = time.monotonic()
        self.lanes, self.workloads = [], len(workloads)
        for workload in workloads:
            self.hooks.checkpoint()
            self.lanes.append(self.prepare(workload))
        self.seconds["preparing"] = time.monotonic() - began
        outcome = self.rounds()
        self.seconds["rounds"] = time.monotonic() - began - self.seconds["preparing"]
        if outcome.stopped != CLEARLY_SLOWER:
            over = outcome.over_incumbent
            faster = over is None or clears(over, outcome.noise, floor=MIN_NOISE_GPU)
            self.recall = look_for_memory(self, faster)
        self.seconds["all"] = time.monotonic() - began
        self.look_at_clocks()
        return outcome

    def all(self, what: str, limit_s: float, requests: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The same request to several runners at the same time; nothing of it is timed. Raises the first failure."""
        found: dict[str, dict[str, Any]] = {}
        for who, answer in self.each(what, limit_s, requests).items():
            if isinstance(answer, Exception):
                raise answer
            found[who] = answer
        return found

    def each(
        self, what: str, limit_s: float, requests: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any] | Exception]:
        """As ``all``, with each runner's failure in the place of its answer."""
        posted: list[tuple[GpuChannel, str, float, str]] = []
        by_channel = {self.runners[who].channel: self.runners[who] for who in requests}
        for who, request in requests.items():
            runner = self.runners[who]
            with runner.blamed():
                posted.append((runner.channel, runner.channel.send(what, **request), limit_s, what))
        answers = settled(posted, lambda channel: by_channel[channel].blamed())
        return dict(zip(requests, answers, strict=True))

    def prepare(self, workload: Workload) -> Lane:
        """Slots, a warm call, graphs: for all runners at the same time where that is not timed."""
        nbytes = total_bytes(self.problem, workload)
        call_ns = self.bench.time_baseline(workload) * 1e9
        sharers = self.workloads * len(self.runners)
        count, cold = slot_count(nbytes, self.bench.l2_bytes, self.bench.gpu.memory_bytes, call_ns, sharers)
        names = [f"{workload.name}/{i}" for i in range(count)]
        lane = Lane(workload, names, cold)
        scales = self.bench.scales_of(workload)
        self.make_slots(workload, [*names, lane.prime])
        self.renew(lane, [*names, lane.prime], scales)
        self.all("call", BASELINE_CALL_LIMIT_S, {who: {"calls": [lane.prime]} for who in self.runners})
        self.capture_ones(lane)
        quickest = math.inf
        for who, runner in self.runners.items():
            call_ns = self.rough_ns(lane, runner)
            quickest = min(quickest, call_ns) if who in (INCUMBENT, BASELINE) else quickest
            lane.calls[who] = calls_in_block(call_ns, self.workloads)
        if math.isfinite(quickest):
            lane.limit_s = max(
                MIN_BLOCK_LIMIT_S, SLOWER_LIMIT * 2 * calls_in_block(quickest, self.workloads) * quickest / 1e9
            )
        self.capture_blocks(lane)
        return lane

    def make_slots(self, workload: Workload, names: Sequence[str]) -> None:
        """In all runners at the same time."""
        asked = {who: runner.slot_requests(workload, names) for who, runner in self.runners.items()}
        for number in range(max(map(len, asked.values()))):
            self.all(
                "slots",
                RENEW_LIMIT_S,
                {who: requests[number] for who, requests in asked.items() if number < len(requests)},
            )

    def capture_ones(self, lane: Lane) -> None:
        """A graph of one call, and one of each slot once. What cannot be captured is timed as plain calls, and said."""
        graph = lane.graph(PRIME)
        requests: dict[str, dict[str, Any]] = {who: {"graph": graph, "calls": [lane.prime]} for who in self.runners}
        answers = self.each("capture", COMPILE_LIMIT_S, requests)
        for who, answer in answers.items():
            runner = self.runners[who]
            if not isinstance(answer, dict):
                if who == CANDIDATE or runner.channel.closed:
                    raise answer
                lane.direct[who] = str(answer)
                runner.capture(graph, [lane.prime], COMPILE_LIMIT_S, direct=True)
            runner.graphs.add(graph)
            lane.nodes[who] = {PRIME: answer.get("nodes") if isinstance(answer, dict) else None}
        graph = lane.graph(ONCE)
        requests = {who: {"graph": graph, "calls": lane.slots, "direct": who in lane.direct} for who in self.runners}
        for who, answer in self.all("capture", COMPILE_LIMIT_S, requests).items():
            self.runners[who].graphs.add(graph)
            lane.nodes[who][ONCE] = answer.get("nodes")

    def rough_ns(self, lane: Lane, runner: GpuRunner) -> float:
        """Roughly the time of a call, from a block of all slots and a block of one call."""
        prime, once = [lane.graph(PRIME)], [lane.graph(ONCE)]
        runner.block(once, prime, RENEW_LIMIT_S)
        wide = min(runner.block(once, prime, RENEW_LIMIT_S).wall_ns for _ in range(2))
        narrow = runner.block(prime, prime, RENEW_LIMIT_S).wall_ns
        return max(500.0, (wide - narrow) / (len(lane.slots) - 1))

    def capture_blocks(self, lane: Lane) -> None:
        requests: dict[str, dict[str, dict[str, Any]]] = {SHORT: {}, LONG: {}}
        for which, factor in ((SHORT, 1), (LONG, 2)):
            for who in self.runners:
                calls = order(lane.slots, factor * lane.calls[who], self.random.randrange(len(lane.slots)))
                requests[which][who] = {"graph": lane.graph(which), "calls": calls, "direct": who in lane.direct}
            for who, answer in self.all("capture", COMPILE_LIMIT_S, requests[which]).items():
                self.runners[who].graphs.add(lane.graph(which))
                lane.nodes[who][which] = answer.get("nodes")
        for who, runner in self.runners.items():  # the first replay of a graph uploads it: 20 % slower at 5 µs a call
            runner.block([lane.graph(SHORT), lane.graph(LONG)], [], self.limit_s(lane, who))
        self.look_at_nodes(lane)

    def look_at_nodes(self, lane: Lane) -> None:
        """Every call must put the same work on the device: else calls are counted, and work is done for several at once."""
        if CANDIDATE not in self.runners:
            return
        nodes = lane.nodes[CANDIDATE]
        one = nodes.get(PRIME)
        if one is None:
            return
        wanted = {ONCE: len(lane.slots), SHORT: lane.calls[CANDIDATE], LONG: 2 * lane.calls[CANDIDATE]}
        for which, calls in wanted.items():
            if nodes.get(which) not in (None, one * calls):
                self.hooks.add_finding(
                    Finding(
                        rule="calls-differ",
                        severity="block",
                        evidence=f"{lane.workload.name}: {calls} calls put {nodes[which]} nodes into a CUDA graph, and one "
                        f"call {one}: the calls do not all do the same work",
                        data={"calls": calls, "nodes": nodes[which], "nodes_of_one": one},
                    )
                )
                return

    def renew(self, lane: Lane, names: Sequence[str], scales: dict[str, float]) -> dict[str, Any]:
        """The same new inputs for every runner, and wrong values in all outputs."""
        items = {name: self.bench.draw() for name in names}
        requests = {who: runner.renewal(items, lane.slots, scales) for who, runner in self.runners.items()}
        self.all("renew", RENEW_LIMIT_S, requests)
        return items

    def slots_to_renew(self, lane: Lane) -> list[str]:
        """Slots that get new inputs in the next round: all where they are few, else ``RENEWED`` chosen now."""
        return lane.slots if len(lane.slots) <= RENEWED else self.random.sample(lane.slots, RENEWED)

    def rounds(self) -> Outcome:
        until = time.monotonic() + self.budget_s
        offset = self.random.randrange(len(ORDERS))
        outcome, pairs = None, 0
        for number in range(self.max_rounds):
            for index, lane in enumerate(self.lanes):
                self.hooks.checkpoint()
                self.round(lane, ORDERS[(number + index + offset) % len(ORDERS)])
            pairs = min(lane.pairs() for lane in self.lanes)
            if pairs < 2:
                continue
            outcome = self.outcome(number + 1, self.verdict_so_far(pairs) or self.exact_enough(pairs))
            self.hooks.progress(self.stage, self.sentence(outcome))
            if outcome.stopped or (pairs >= self.min_rounds and time.monotonic() > until):
                break
        if outcome is None or (pairs < self.min_rounds and not outcome.stopped):
            raise Infrastructure("this host is too busy to measure: blocks of twice the calls did not take longer")
        return outcome

    def round(self, lane: Lane, places: Sequence[int]) -> None:
        scales = self.bench.scales_of(lane.workload)
        names = list(self.runners)
        turn = [names[i] for i in places if i < len(names)]
        clocks: dict[str, dict[str, Any]] = {LONG: {}, SHORT: {}}
        halves = [LONG, SHORT]
        self.random.shuffle(halves)
        for which in halves:
            renewed = self.renew(lane, self.slots_to_renew(lane), scales)
            for who in turn:
                clocks[which][who] = self.runners[who].block(
                    [lane.graph(which)], [lane.graph(PRIME)], self.limit_s(lane, who)
                )
            if which == LONG and CANDIDATE in self.runners and 2 * lane.calls[CANDIDATE] >= len(lane.slots):
                self.check(lane, self.runners[CANDIDATE], self.random.choice(sorted(renewed)))
        for who in self.runners:
            lane.add(who, clocks[LONG][who], clocks[SHORT][who])

    def limit_s(self, lane: Lane, who: str) -> float:
        return BASELINE_CALL_LIMIT_S if who == BASELINE else lane.limit_s

    def check(self, lane: Lane, runner: GpuRunner, slot: str) -> None:
        found = self.bench.check(runner, lane.workload, slot).comparison
        self.checked += 1
        if not found.passed:
            raise CandidateFailure("incorrect", f"{lane.workload.name}: in a timed call, {found.detail}")

    def look_at_clocks(self) -> None:
        """The device's events must tell the same story as the evaluator's clock."""
        if CANDIDATE not in self.runners or self.bench.gpu.device != "cuda":
            return
        for lane in self.lanes:
            ratios = lane.clock_ratios(CANDIDATE)
            if len(ratios) < 3 or CANDIDATE in lane.direct:
                continue
            found = centre_of(ratios)
            hidden = found.lo > math.log1p(WORK_HIDDEN) or found.hi < -math.log1p(WORK_HIDDEN)
            if found.lo > math.log1p(CLOCKS_DISAGREE) or found.hi < -math.log1p(CLOCKS_DISAGREE):
                self.hooks.add_finding(
                    Finding(
                        rule="clocks-disagree",
                        severity="block" if hidden else "warning",
                        evidence=f"{lane.workload.name}: the evaluator's clock says {math.exp(found.centre):.3f} times what "
                        "the device's events say: work is hidden from one of them",
                        data={"ratio": math.exp(found.centre), "lo": math.exp(found.lo), "hi": math.exp(found.hi)},
                    )
                )

    def clocks(self) -> dict[str, dict[str, float]]:
        """By workload and runner: the evaluator's clock over the device's."""
        return {
            lane.workload.name: {
                who: round(math.exp(statistics.median(logs)), 4)
                for who in self.runners
                if (logs := lane.clock_ratios(who)) and who not in lane.direct
            }
            for lane in self.lanes
        }

    def verdict_so_far(self, pairs: int) -> str:
        """Why to stop now, or nothing."""
        if not self.incumbents or CANDIDATE not in self.runners or pairs < QUICK_ROUNDS:
            return ""
        if pairs < self.min_rounds:
            overall = combine([centre_of(lane.log_ratios(self.incumbents, CANDIDATE)) for lane in self.lanes])
            slower = math.exp(overall.hi) < HOPELESS_AFTER_QUICK and not somewhere_faster(self)
            return CLEARLY_SLOWER if slower else ""
        outcome = self.outcome(pairs, "")
        assert outcome.over_incumbent is not None
        if clears(outcome.over_incumbent, outcome.noise, floor=MIN_NOISE_GPU):
            return "clearly faster"
        return "not beyond the noise" if hopeless(outcome.over_incumbent, outcome.noise, MIN_NOISE_GPU) else ""

    def exact_enough(self, pairs: int) -> str:
        """More rounds make the interval no narrower once what differs from process to process is most of it."""
        if pairs < self.min_rounds or not self.incumbents or CANDIDATE not in self.runners:
            return ""
        raw = combine([centre_of(lane.log_ratios(self.incumbents, CANDIDATE)) for lane in self.lanes])
        whole = combine(self.estimate(self.incumbents, CANDIDATE, 1.5))
        return "as exact as it gets" if raw.hi - raw.lo < EXACT_SHARE * (whole.hi - whole.lo) else ""

    def estimate(self, numerator: Sequence[str], denominator: str, processes: float) -> list[Estimate]:
        """One estimate a workload; ``processes`` is the variance of the ratio in units of one process's."""
        found = []
        for lane in self.lanes:
            sd = process_sd(lane.median_us([denominator]) or 1.0) * math.sqrt(processes)
            found.append(centre_of(lane.log_ratios(numerator, denominator)).widened(sd))
        return found

    def outcome(self, rounds: int, stopped: str) -> Outcome:
        speedups = self.estimate([BASELINE], CANDIDATE, 2.0) if BASELINE in self.runners else []
        overs = self.estimate(self.incumbents, CANDIDATE, 1.5) if self.incumbents else []
        noises = self.estimate([INCUMBENT], SECOND, 0.0) if len(self.incumbents) == 2 else []
        names = [lane.workload.name for lane in self.lanes]
        ratios: list[list[Ratio | None]] = [
            [e.ratio() for e in found] if found else [None] * len(names) for found in (speedups, overs, noises)
        ]
        return Outcome(
            speedup=combine(speedups).ratio() if speedups else None,
            over_incumbent=combine(overs).ratio() if overs else None,
            noise=combine(noises).ratio() if noises else None,
            by_workload=dict(zip(names, zip(*ratios, strict=True), strict=True)),
            times_us={lane.workload.name: self.medians_us(lane) for lane in self.lanes},
            rounds=rounds,
            stopped=stopped,
        )

    def medians_us(self, lane: Lane) -> dict[str, float]:
        groups = {who: [who] for who in self.runners} | ({INCUMBENT: self.incumbents} if self.incumbents else {})
        found = {who: lane.median_us(group) for who, group in groups.items()}
        return {who: value for who, value in found.items() if value is not None}

    def sentence(self, outcome: Outcome) -> str:
        over = outcome.over_incumbent or outcome.speedup
        if over is None:
            return f"round {outcome.rounds}"
        what = "over the incumbent" if outcome.over_incumbent else "over the baseline"
        return f"round {outcome.rounds}: {over.value:.4f}× {what} ({over.lo:.4f} to {over.hi:.4f})"
