"""LayerNorm of a sum in float64."""

from __future__ import annotations

import torch

BLOCK_BYTES = 1 << 24
"""Rows are taken in blocks, so that the float64 temporaries stay small, even for a tensor of several GiB."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    x, residual = inputs["x"], inputs["residual"]
    weight, bias = inputs["weight"].double(), inputs["bias"].double()
    y = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    total = torch.empty_like(y)
    block = max(1, BLOCK_BYTES // (8 * axes["hidden"]))
    for a, b, normed, added in zip(x.split(block), residual.split(block), y.split(block), total.split(block), strict=True):
        torch.add(a.double(), b.double(), out=added)
        centred = added - added.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        normed.copy_(centred / torch.sqrt(variance + 1e-5) * weight + bias)
    return {"y": y, "total": total}
