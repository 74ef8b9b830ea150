"""What somebody could write who has not computed anything, and whether the tolerance lets it pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..accuracy import compare

Array = NDArray[np.float64]


def guesses(answers: Sequence[Array]) -> dict[str, Array]:
    """Guesses at the first answer by name; the others are answers to other draws of the same workload.

    A mean over a single value, or over columns that are all the same (heads that attend to one token), is no guess but
    the answer, and left out.
    """
    true, others = answers[0], answers[1:]
    found: dict[str, Array] = {"zeros": np.zeros_like(true)}
    if not np.isfinite(true).all():
        return found
    if true.size > 1:
        found["the mean of the tensor"] = np.full_like(true, true.mean())
    if true.ndim > 1 and true.shape[-1] > 1:
        found["the mean of each row"] = np.broadcast_to(true.mean(-1, keepdims=True), true.shape)
    if true.ndim > 1 and true.size > true.shape[-1]:
        flat = true.reshape(-1, true.shape[-1])
        if (flat != flat[0]).any():
            found["the mean of each column"] = np.broadcast_to(flat.mean(0), flat.shape).reshape(true.shape)
    if others:
        found["the answer to another draw"] = others[0]
    if len(others) > 1:
        found["the mean of the answers to other draws"] = np.mean(others, axis=0)
    return found


def passing(answers: Sequence[Array], t: float) -> list[str]:
    """The guesses that the error test would let pass."""
    with np.errstate(all="ignore"):
        return [name for name, guess in guesses(answers).items() if compare(guess, answers[0], t).passed]


def fixed_share(answers: Sequence[Array]) -> float:
    """The share of values that are the same, bit for bit, in the answers to all draws."""
    same = np.ones(answers[0].shape, dtype=bool)
    for other in answers[1:]:
        same &= (answers[0] == other) | (np.isnan(answers[0]) & np.isnan(other))
    return float(same.mean())


def changed_share(before: Array, after: Array) -> float:
    return float((before != after).mean())
