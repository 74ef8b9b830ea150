"""The error test: |out − ref| ≤ t·RMS(ref) + t·|ref|, element by element, against a float64 reference.

The floor is tied to the RMS and never to the largest value: one large element would excuse all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 1 << 15
TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Comparison:
    """``error`` is max |out − ref| ÷ (RMS(ref) + |ref|): the candidate passes when it is at most t everywhere."""

    passed: bool
    error: float
    detail: str = ""


def rms(reference: NDArray[np.floating[Any]]) -> float:
    finite = reference[np.isfinite(reference)] if not np.isfinite(reference).all() else reference.ravel()
    return float(np.sqrt(np.mean(np.square(finite, dtype=np.float64)))) if finite.size else 0.0


def compare(out: NDArray[np.floating[Any]], reference: NDArray[np.floating[Any]], t: float) -> Comparison:
    """Compare one output. NaN never passes; an infinity passes only where the reference has the same one."""
    scale = rms(reference)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(out - reference)
        limit = np.abs(reference) + (scale + TINY)
        relative = error / limit
    finite = np.isfinite(reference)
    if not finite.all():
        relative = np.where(finite, relative, np.where(out == reference, 0.0, np.inf))
    wrong = ~(relative <= t)
    count = int(wrong.sum())
    if not count:
        return Comparison(True, float(relative.max(initial=0.0)))
    return Comparison(False, _worst(relative), _describe(out, reference, wrong, count))


def agrees(out: NDArray[Any], other: NDArray[Any], t: float) -> bool:
    """Whether two float32 arrays agree within t·RMS + t·|other| everywhere: quick, in pieces that fit a cache."""
    a, b = out.reshape(-1), other.reshape(-1)
    floor = t * (float(np.sqrt(np.dot(b, b) / max(1, b.size))) + TINY)
    if not np.isfinite(floor):
        return False
    for first in range(0, a.size, PIECE):
        x, y = a[first : first + PIECE], b[first : first + PIECE]
        error, limit = np.abs(x - y), np.abs(y)
        limit *= t
        limit += floor
        if not (error <= limit).all():
            return False
    return True


def _worst(relative: NDArray[Any]) -> float:
    finite = relative[np.isfinite(relative)]
    return float(finite.max(initial=0.0)) if finite.size == relative.size else float("inf")


def _describe(out: NDArray[Any], reference: NDArray[Any], wrong: NDArray[np.bool_], count: int) -> str:
    index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    where = ", ".join(str(int(i)) for i in index)
    text = f"{count} of {out.size} values are wrong; the first at [{where}]: {out[index]:.6g}, expected {reference[index]:.6g}"
    if bad := int((~np.isfinite(out) & np.isfinite(reference)).sum()):
        text += f"; {bad} are not finite where the reference is"
    return text
