"""One workload in a timing session on a GPU: how many slots and calls, and what was measured. Mostly pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..problem import Workload
from .channel import Clocks

MIN_SLOTS, MAX_SLOTS = 4, 256
ONCE_NS, LONG_ENOUGH = 300_000, 64
"""A block in which each slot is called once is at least so long: the evaluator's clock is disturbed by some 20 µs."""
RENEWED = 8
SESSION_NS, MIN_BLOCK_NS, MAX_BLOCK_NS = 24_000_000, 2_000_000, 16_000_000
"""The evaluator's clock is disturbed by some 17 µs a block: few workloads get longer blocks, many average it out.

With 8 ms at most for a single workload, 78 of 88 gains of 1 % were recognised (docs/results/harness-h200.md)."""
MIN_CALLS, MAX_CALLS = 2, 1536
MEMORY_SHARE, MEMORY_OF_ALL = 0.08, 0.5
"""Of the GPU's memory, for one workload in one process, and for all workloads in all processes of a session together."""
SHORT, LONG, ONCE, PRIME = "short", "long", "once", "prime"


def slot_count(
    bytes_of_call: int, l2_bytes: int, memory_bytes: int, call_ns: float = math.inf, sharers: int = 1
) -> tuple[int, bool]:
    """How many slots are rotated, and whether that leaves the second-level cache cold.

    :param call_ns: the baseline's time.
    :param sharers: how many of such rings lie on the GPU at the same time: workloads by processes.

    Between two calls on the same slot all others are used: cold once that is more than twice the cache.
    """
    wanted = math.ceil(2 * l2_bytes / max(1, bytes_of_call)) + 1
    share = min(MEMORY_SHARE, MEMORY_OF_ALL / sharers)
    most = max(
        2, int(memory_bytes * share / max(1, bytes_of_call)) - 1
    )  # one more is the slot that is called before a block
    long_enough = math.ceil(ONCE_NS / max(1000.0, call_ns))
    count = min(max(MIN_SLOTS, wanted, min(long_enough, LONG_ENOUGH)), MAX_SLOTS, most)
    return count, (count - 1) * bytes_of_call >= 2 * l2_bytes


def calls_in_block(call_ns: float, workloads: int = 1) -> int:
    """N of a block, by how many workloads a session has. The other block has 2N."""
    block_ns = max(MIN_BLOCK_NS, min(MAX_BLOCK_NS, SESSION_NS / workloads))
    return max(MIN_CALLS, min(MAX_CALLS, math.ceil(block_ns / max(1.0, call_ns))))


def order(names: Sequence[str], calls: int, first: int) -> list[str]:
    """The slots of that many calls, one after the other around the ring."""
    return [names[(first + i) % len(names)] for i in range(calls)]


def slope(long: float, short: float, calls: int) -> float:
    """Time of one call from blocks of 2N and N; NaN where the longer block did not take longer."""
    net = (long - short) / calls
    return net if net > 0 else math.nan


@dataclass
class Lane:
    workload: Workload
    slots: list[str]
    cold: bool
    calls: dict[str, int] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    """By runner and round: nanoseconds of a call by the evaluator's clock."""
    device_times: dict[str, list[float]] = field(default_factory=dict)
    nodes: dict[str, dict[str, int | None]] = field(default_factory=dict)
    direct: dict[str, str] = field(default_factory=dict)
    """Runners whose calls could not be captured, with the reason."""
    limit_s: float = 60.0
    raw: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    """By runner and round: both clocks of the longer and of the shorter block."""

    @property
    def prime(self) -> str:
        return f"{self.workload.name}/{PRIME}"

    def graph(self, which: str) -> str:
        return f"{self.workload.name}/{which}"

    def add(self, who: str, long: Clocks, short: Clocks) -> None:
        calls = self.calls[who]
        self.raw.setdefault(who, []).append((*long, *short))
        self.times.setdefault(who, []).append(slope(long.wall_ns, short.wall_ns, calls))
        self.device_times.setdefault(who, []).append(slope(long.device_ns, short.device_ns, calls))

    def log_ratios(self, numerator: Sequence[str], denominator: str) -> list[float]:
        """By round: log of the numerators' geometric mean over the denominator's time."""
        logs = []
        for number, below in enumerate(self.times[denominator]):
            above = [self.times[who][number] for who in numerator]
            if not any(math.isnan(t) for t in [below, *above]):
                logs.append(statistics.fmean(math.log(t) for t in above) - math.log(below))
        return logs

    def clock_ratios(self, who: str) -> list[float]:
        """By round: log of the evaluator's clock over the device's."""
        pairs = zip(self.times[who], self.device_times[who], strict=True)
        return [math.log(a / b) for a, b in pairs if not (math.isnan(a) or math.isnan(b))]

    def pairs(self) -> int:
        return sum(not any(map(math.isnan, row)) for row in zip(*self.times.values(), strict=True))

    def median_us(self, who: Sequence[str]) -> float | None:
        good = [t for name in who for t in self.times[name] if not math.isnan(t)]
        return statistics.median(good) / 1e3 if good else None

    def labels(self) -> list[str]:
        found = [] if self.cold else ["warm-cache"]
        return found + [f"{who} not graphed: host-bound" for who in self.direct]
