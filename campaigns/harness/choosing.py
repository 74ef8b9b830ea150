"""Does a candidate choose which of its blocks count? A block that was disturbed is measured again, so one that sleeps at the
end of slow blocks is judged by its lucky ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lane import Lane

MIN_ROUNDS = 15
MOST_LONGER = 1.5
"""A candidate whose calls take longer than this is disturbed more often for that reason, and is kept nowhere."""
OFTEN, TIMES = 0.5, 4
"""In so large a share of the rounds it is disturbed and another runner is not, and so many times as often as the reverse; of
every other runner. Shares of all blocks do not tell: on a machine that is busy in bursts those of one incumbent's two
processes were seen 0.15 and 0.62 apart, since tries that follow each other share a burst. So first tries are compared."""


def chooses(first_tries: Mapping[str, Sequence[bool | None]], who: str, times_longer: float) -> bool:
    """Whether ``who`` is singled out, and not because its blocks are longer.

    :param first_tries: by runner, whether the first try of each workload in each round was disturbed, in the same order. None where
        it does not count: a process that was stopped and looked at just before has used up its turn on a busy core.
    """
    mine = first_tries[who]
    others = [tries for name, tries in first_tries.items() if name != who]
    if sum(tried is not None for tried in mine) < MIN_ROUNDS or not all(len(tries) == len(mine) for tries in others):
        return False
    return times_longer <= MOST_LONGER and all(singled_out(mine, tries) for tries in others)


def singled_out(mine: Sequence[bool | None], other: Sequence[bool | None]) -> bool:
    both = [(a, b) for a, b in zip(mine, other, strict=True) if a is not None and b is not None]
    alone = sum(a and not b for a, b in both)
    reverse = sum(b and not a for a, b in both)
    return alone >= OFTEN * len(both) and alone >= TIMES * (reverse + 1)


def longer(lanes: Iterable[Lane], who: str) -> float:
    """How many times as long as the others' its calls are at most, and never below 1: longer blocks are disturbed more often."""
    found = [1.0]
    for lane in lanes:
        mine = [t for t in lane.times.get(who, []) if t == t]
        rest = [t for name, times in lane.times.items() if name != who for t in times if t == t]
        if mine and rest:
            found.append(statistics.median(mine) / statistics.median(rest))
    return max(found)
