"""Which idea gets the next attempt. Pure: the counts of each idea in, one of them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST_TRIES = 2
"""Attempts that every idea gets before they are compared."""
CURIOSITY = 0.5
"""Weight of the bonus for ideas tried seldom. 1.4 is UCB1's for rewards spread over 0 to 1; ours are mostly 0, about one
in five is kept, so that the bonus would drown them."""


@dataclass(frozen=True)
class Arm:
    """One idea. ``gain`` is the sum of log2 speed-ups over the incumbent of what was kept; ``tries`` include those
    under way, so that several proposals at once do not all go to one idea."""

    idea: int
    tries: int
    kept: int
    gain: float = 0.0


def in_turn(arms: Sequence[Arm]) -> int | None:
    """The idea with the fewest attempts, the newest among equals. None: there is no open idea."""
    return min(arms, key=lambda a: (a.tries, -a.idea)).idea if arms else None


def by_pay(arms: Sequence[Arm]) -> int | None:
    """The idea that promises most: what it brought so far, and a bonus that falls with its tries.

    UCB1 (Auer, Cesa-Bianchi, Fischer, "Finite-time analysis of the multiarmed bandit problem", 2002). A kept attempt
    pays half for being kept, and up to half for its gain: a doubling pays all.
    """
    untried = [arm for arm in arms if arm.tries < FIRST_TRIES]
    if untried or not arms:
        return in_turn(untried)
    total = sum(arm.tries for arm in arms)
    return max(arms, key=lambda a: (reward(a) + CURIOSITY * math.sqrt(math.log(total) / a.tries), a.idea)).idea


def reward(arm: Arm) -> float:
    """Mean pay of an attempt, 0 to 1."""
    return (0.5 * arm.kept + 0.5 * min(arm.gain, arm.kept)) / arm.tries
