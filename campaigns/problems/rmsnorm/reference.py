"""RMSNorm in float64."""

from __future__ import annotations

import torch

BLOCK_BYTES = 1 << 24
"""Rows are taken in blocks, so that the float64 temporaries stay small, even for a tensor of several GiB."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    x, weight = inputs["x"], inputs["weight"].double()
    y = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    block = max(1, BLOCK_BYTES // (8 * axes["hidden"]))
    for rows_in, rows_out in zip(x.split(block), y.split(block), strict=True):
        wide = rows_in.double()
        rows_out.copy_(wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight)
    return {"y": y}
