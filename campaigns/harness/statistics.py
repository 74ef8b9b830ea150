"""Estimates and honest intervals from few, skewed, paired measurements."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .report import Ratio

Z95 = 1.959964


class Estimate:
    """A logarithm of a ratio with a half-width at 95 %."""

    def __init__(self, centre: float, lo: float, hi: float) -> None:
        self.centre, self.lo, self.hi = centre, lo, hi

    def widened(self, sd: float) -> Estimate:
        """With an independent error of standard deviation ``sd`` that repetition inside one session cannot show."""
        below = math.hypot(self.centre - self.lo, Z95 * sd)
        above = math.hypot(self.hi - self.centre, Z95 * sd)
        return Estimate(self.centre, self.centre - below, self.centre + above)

    def ratio(self) -> Ratio:
        return Ratio(value=math.exp(self.centre), lo=math.exp(self.lo), hi=math.exp(self.hi))


@functools.cache
def signed_rank_depth(n: int, level: float = 0.95) -> int:
    """How many Walsh averages to leave out at either end for an interval of at least ``level`` (exact, n ≤ 60).

    Hollander & Wolfe, Nonparametric Statistical Methods, section 3.3. At n ≤ 5 no such interval exists: 0.
    """
    counts = np.ones(1)
    for rank in range(1, n + 1):
        wider = np.zeros(counts.size + rank)
        wider[: counts.size] += counts
        wider[rank:] += counts
        counts = wider
    tail = np.cumsum(counts) / counts.sum()
    return max(0, int(np.searchsorted(tail, (1 - level) / 2, side="right")))


def centre_of(logs: ArrayLike) -> Estimate:
    """The Hodges–Lehmann estimate of a symmetric centre with its signed-rank interval.

    Below six values the interval is their whole range, which is then less than 95 %: callers measure at least six.
    """
    values: NDArray[np.float64] = np.sort(np.asarray(logs, dtype=np.float64))
    i, j = np.triu_indices(values.size)
    walsh = np.sort((values[i] + values[j]) / 2)
    depth = max(0, signed_rank_depth(values.size) - 1)
    return Estimate(float(np.median(walsh)), float(walsh[depth]), float(walsh[-1 - depth]))


def combine(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of independent estimates: the geometric mean of the ratios."""
    n = len(estimates)
    centre = sum(e.centre for e in estimates) / n
    below = math.sqrt(sum((e.centre - e.lo) ** 2 for e in estimates)) / n
    above = math.sqrt(sum((e.hi - e.centre) ** 2 for e in estimates)) / n
    return Estimate(centre, centre - below, centre + above)
