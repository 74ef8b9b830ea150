"""What a gain must be to count: used by the evaluator to decide on a confirmation, and by the judge to keep."""

from __future__ import annotations

from .report import Ratio

MIN_NOISE = 0.01
"""No band on a shared CPU is believed to be narrower than 1 %, whatever one A/A pair shows."""
MIN_NOISE_GPU = 0.0025
"""The same of a GPU that is alone, timed by CUDA graphs: docs/results/harness-h200.md."""


def noise_band(noise: Ratio | None, floor: float = MIN_NOISE) -> float:
    """The half-width within which nothing is told apart, as a share: 0.02 is ±2 %. From the A/A pair's interval."""
    if noise is None:
        return floor
    return max(floor, noise.hi - 1.0, 1.0 - noise.lo)


def floor_for(kind: str) -> float:
    """The floor of the noise band by ``Host.kind``: ``cpu``, or a GPU's name."""
    return MIN_NOISE if kind == "cpu" else MIN_NOISE_GPU


def clears(over: Ratio | None, noise: Ratio | None, min_gain: float = 0.0, floor: float = MIN_NOISE) -> bool:
    """Whether the lower bound of a speed-up is above 1 by more than the noise band (and the gain asked for)."""
    return over is not None and over.lo > 1.0 + max(noise_band(noise, floor), min_gain)


NARROWED = 1.2
"""How much wider the interval of the A/A pair is than a gain's at equal rounds: two processes against one of two and one."""


def hopeless(over: Ratio, noise: Ratio | None, floor: float = MIN_NOISE) -> bool:
    """Whether more rounds cannot make it a keep: even the upper bound stays inside the band.

    One disturbed round may make the band wide, and more rounds make it narrow again: it counts here no wider than the
    gain's own interval lets expect.
    """
    band = noise_band(noise, floor)
    if noise is not None:
        band = min(band, max(floor, abs(noise.value - 1.0) + NARROWED * (over.hi - over.lo) / 2))
    return over.hi < 1.0 + band


WORST = 0.95
"""No workload of a keep may fall below this share of the incumbent's speed, beyond its own interval."""


def is_worse(over: Ratio | None) -> bool:
    """Whether a workload is slower than the incumbent by more than is allowed, beyond doubt."""
    return over is not None and over.hi < WORST
