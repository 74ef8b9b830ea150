"""The one word for a kernel with counters, by Nsight Compute's own rules (its SOLBottleneck rule, SpeedOfLight.py).

80 % of peak in compute or memory is saturation; below 60 % in both a kernel waits, it neither computes nor loads;
between, a lead of 10 points decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from profiling.ncu.metrics import MEMORY_PERCENT, SM_PERCENT, WAVES, Metrics, NotCollected

SATURATED_PERCENT, LATENCY_PERCENT, LEAD_POINTS = 80.0, 60.0, 10.0
SPEED_OF_LIGHT = NotCollected("speed of light", "--section SpeedOfLight")


@dataclass(frozen=True)
class KernelLabel:
    """``name``: compute-bound, memory-bound, latency-bound, balanced, or not enough data.

    ``short`` is the verdict in the words of the tests' reference: compute, memory, latency, balanced, unknown.
    """

    name: str
    short: str
    reason: str
    saturated: bool = False
    small_grid: bool = False


def peak(percent: float) -> str:
    """Percent of peak; something is never shown as nothing."""
    return "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def label(metrics: Metrics) -> KernelLabel:
    compute, memory = metrics.number(SM_PERCENT), metrics.number(MEMORY_PERCENT)
    if compute is None or memory is None:
        return KernelLabel("not enough data", "unknown", SPEED_OF_LIGHT.sentence)
    figures = f"compute {peak(compute)} and memory {peak(memory)} of peak"
    side, most = ("memory", memory) if memory >= compute else ("compute", compute)
    if most >= SATURATED_PERCENT:
        other = "shift work to the other side, or do less of it"
        return KernelLabel(f"{side}-bound", side, f"{figures}: {side} is saturated; {other}", saturated=True)
    if most < LATENCY_PERCENT:
        return latency(figures, metrics.number(WAVES))
    if most - min(compute, memory) >= LEAD_POINTS:
        return KernelLabel(f"{side}-bound", side, f"{figures}: {side} leads by {abs(compute - memory):.0f} points")
    return KernelLabel("balanced", "balanced", f"{figures}: within {LEAD_POINTS:.0f} points of each other")


def latency(figures: str, waves: float | None) -> KernelLabel:
    if waves is not None and waves < 1:
        why = f"the grid fills only {waves:.2g} of one wave, so multiprocessors stand empty"
        return KernelLabel("latency-bound", "latency", f"{figures}, both below 60 %: {why}", small_grid=True)
    why = "warps wait for data or for each other; look at the stall reasons"
    return KernelLabel("latency-bound", "latency", f"{figures}, both below 60 %: {why}")
