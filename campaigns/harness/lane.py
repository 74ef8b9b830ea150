"""One workload in a timing session on a CPU: its blocks, and what was measured. The GPU has its own in ``gpu/lane.py``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from .bench import Stand
from .runner import InputSlot


@dataclass
class Lane:
    """One workload in a session: its input slots, the size of its blocks, and what was measured."""

    stand: Stand
    calls: int = 1
    """N of a block; the longer block has 2N."""
    slots: list[InputSlot] = field(default_factory=list)
    """3N of them, or one where a single call is a block of its own."""
    times: dict[str, list[float]] = field(default_factory=dict)
    """By runner and round: nanoseconds of a call, NaN where every try was disturbed."""
    limit_s: float = 60.0
    """Of a block of the candidate or incumbent, before it is ended."""
    generation: int = 0
    """Counts up whenever new values are written to the inputs."""
    ran: dict[str, int] = field(default_factory=dict)
    """By runner, the generation of the inputs that it ran on last."""
    checked: int = 0
    """The generation on which the candidate's outputs were checked last."""
    outside_ns: float = 0.0
    """Processor time outside the clock (``Took.outside_ns``), summed over the blocks of one try."""
    outside: dict[str, list[float]] = field(default_factory=dict)
    """The same by runner and round, of the try that counted; NaN where none did."""

    @property
    def single(self) -> bool:
        """Whether one call takes so long that it is a block of its own."""
        return len(self.slots) == 1

    def log_ratios(self, numerator: Sequence[str], denominator: str) -> list[float]:
        """By round: log of the numerators' geometric mean over the denominator's time. Disturbed rounds are left out."""
        logs = []
        for r, below in enumerate(self.times[denominator]):
            above = [self.times[who][r] for who in numerator]
            if not any(math.isnan(t) for t in [below, *above]):
                logs.append(statistics.fmean(math.log(t) for t in above) - math.log(below))
        return logs

    def pairs(self) -> int:
        """Rounds in which no runner was disturbed."""
        return sum(not any(map(math.isnan, row)) for row in zip(*self.times.values(), strict=True))
