"""Whether a step's logits are still those of the model: error bounds, and the token that would be chosen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from campaigns.harness.accuracy import TINY, compare, rms

from .request import Parity

DRIFT = 1.5
"""A stack's RMS error over the true baseline's, at most: rounding in another order costs no more."""
ROUNDED = 0.05
"""That holds where the true baseline's RMS error is above this share of one value's tolerance: there rounding made the
tolerance wide, and would hide a drift."""


def parity(out: NDArray[Any], reference: NDArray[np.float64], t: float) -> Parity:
    """One draw. Both arrays are ``[steps, batch, vocab]``, the reference in float64."""
    found = compare(out, reference, t)
    rows, wanted = out.reshape(-1, out.shape[-1]), reference.reshape(-1, reference.shape[-1])
    finite = np.where(np.isfinite(rows), rows, -np.inf)
    same = finite.argmax(-1) == wanted.argmax(-1)
    second, best = np.sort(np.partition(wanted, -2, axis=-1)[:, -2:], axis=-1).T
    tied = best - second <= t * (rms(reference) + TINY)
    wrong = int((~same & ~tied).sum())
    detail = found.detail
    if wrong:
        detail = f"another token than the reference's in {wrong} of {len(rows)} steps" + (
            f"; {detail}" if detail else ""
        )
    return Parity(
        steps=len(rows),
        agreed=int(same.sum()),
        ties=int((~same & tied).sum()),
        error=found.error,
        tolerance=t,
        passed=found.passed and not wrong,
        rms_error=rms(np.where(np.isfinite(reference), out - reference, 0.0)) / (rms(reference) + TINY),
        detail=detail,
    )


def rms_allowed(base: Parity) -> float:
    """The RMS error that a stack on this baseline may have; infinite where one value's tolerance is tight enough."""
    return DRIFT * base.rms_error if base.rms_error > ROUNDED * base.tolerance else math.inf


def drift(found: Parity, most_rms: float) -> str:
    """What is to be said of logits that are off by more than that together, though none is by itself; else nothing."""
    if found.rms_error <= most_rms:
        return ""
    return (
        f"its logits are off by {found.rms_error:.2g} of their RMS, where {most_rms:.2g} is allowed: {DRIFT} times what the "
        "model without kernels has"
    )


def joined(parts: list[Parity]) -> Parity:
    """Several draws: all must pass, and the worst error counts."""
    failed = next((p for p in parts if not p.passed), None)
    return Parity(
        steps=sum(p.steps for p in parts),
        agreed=sum(p.agreed for p in parts),
        ties=sum(p.ties for p in parts),
        error=max(p.error for p in parts),
        tolerance=parts[0].tolerance,
        passed=failed is None,
        rms_error=max(p.rms_error for p in parts),
        detail=failed.detail if failed else "",
    )
