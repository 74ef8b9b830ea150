"""Rotary position embedding in float64."""

from __future__ import annotations

import torch

BLOCK_BYTES = 1 << 24
"""Tokens are taken in blocks, so that the float64 temporaries stay small, even for a tensor of several GiB."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    x, half = inputs["x"], axes["dim"] // 2
    y = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    block = max(1, BLOCK_BYTES // (8 * axes["heads"] * axes["dim"]))
    parts = (t.split(block) for t in (x, inputs["cos"], inputs["sin"], y))
    for rows, cos, sin, out in zip(*parts, strict=True):
        low, high = rows[..., :half].double(), rows[..., half:].double()
        c, s = cos.double()[:, None, :], sin.double()[:, None, :]
        out[..., :half] = low * c - high * s
        out[..., half:] = high * c + low * s
    return {"y": y}
