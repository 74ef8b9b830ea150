"""Whether a step's logits are still those of the model: error bounds, and the token that would be chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from campaigns.harness.accuracy import TINY, compare, rms

from .request import Parity


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
