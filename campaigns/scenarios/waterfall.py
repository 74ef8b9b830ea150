"""From interleaved times to stages: gains, shares, Amdahl ceilings, and which gain is not believed. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from campaigns.harness.report import Ratio
from campaigns.harness.session import PROCESS_SD
from campaigns.harness.statistics import centre_of

from .request import Parity, StackKernel, Stage, Trial

Rounds = Mapping[str, Sequence[float]]
"""By variant: µs of one step in each round. The same round of two variants ran one after the other; NaN: disturbed."""


def process_sd(noise: Ratio) -> float:
    """How far two processes of the same code lie apart: what the harness knows of that, or what was seen here if more.

    ``noise`` is one against another, so that its logarithm has twice one process's variance.
    """
    return max(PROCESS_SD, abs(math.log(noise.value)) / math.sqrt(2))


def ratio(times: Rounds, above: str, below: str, sd: float) -> Ratio:
    """How many times faster ``below`` is than ``above``, by the pairs of their rounds."""
    pairs = zip(times[above], times[below], strict=True)
    logs = [math.log(a / b) for a, b in pairs if not (math.isnan(a) or math.isnan(b))]
    return centre_of(logs).widened(sd * math.sqrt(2)).ratio()


def share(times: Rounds, step: str, without: str, sd: float) -> Ratio:
    """Which part of the step goes into what ``without`` leaves out: 1 − 1/r, never below 0."""
    faster = ratio(times, step, without, sd)
    value, lo, hi = (max(0.0, 1 - 1 / r) for r in (faster.value, faster.lo, faster.hi))
    return Ratio(value=value, lo=lo, hi=hi)


def amdahl(part: float, speedup: float = math.inf) -> float:
    """1/(1 − p(1 − 1/S)); at most 1,000, where p is so near 1 that the measurement says no more."""
    return 1 / max(1e-3, 1 - part * (1 - 1 / speedup))


def trial(kernels: Sequence[StackKernel], gain: Ratio | None) -> Trial:
    """Whether a combination holds: together clear of 1, beyond the interval of the interleaved rounds."""
    names = " + ".join(kernel.label for kernel in kernels)
    ids = [kernel.id for kernel in kernels]
    if gain is None:
        return Trial(kernels=ids, gain=None, holds=False, why="none of them was right in the model")
    words = f"{names}: {gain.value:.3f}× together ({gain.lo:.3f} to {gain.hi:.3f})"
    if gain.lo > 1:
        return Trial(kernels=ids, gain=gain, holds=True, why=words)
    why = "slower together" if gain.hi < 1 else "not told apart together either"
    return Trial(kernels=ids, gain=gain, holds=False, why=f"{why}: {words}")


def stage(
    kernel: StackKernel, time_us: float, before_us: float, over_base: Ratio, gain: Ratio, part: Ratio, parity: Parity
) -> Stage:
    """One step of the waterfall, with what it could have been at most. ``part`` is of the step before."""
    speedup = kernel.speedup
    ceiling = amdahl(part.value, speedup.value) if speedup else None
    flag = note = ""
    if gain.lo > amdahl(part.hi):
        flag = (
            f"{gain.value:.3f}× (at least {gain.lo:.3f}×) is more than leaving {kernel.operator} out altogether would give "
            f"({amdahl(part.value):.3f}×, at most {amdahl(part.hi):.3f}×): something else became faster, or the machine drifted"
        )
    elif speedup and gain.lo > amdahl(part.hi, speedup.hi):
        note = f"more than {kernel.operator} by itself, {speedup.value:.2f}× faster when it was judged, explains"
    return Stage(
        kernel=kernel.id,
        operator=kernel.operator,
        label=kernel.label,
        time_us=time_us,
        over_base=over_base,
        gain=gain,
        saved_us=before_us - time_us,
        share=part,
        ceiling=ceiling,
        limit=amdahl(part.value),
        parity=parity,
        flag=flag,
        note=note,
    )
