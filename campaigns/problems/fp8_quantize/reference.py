"""The scaled values in float64, before they are rounded to FP8, and the scales."""

from __future__ import annotations

import torch

BLOCK_BYTES = 1 << 24
"""Rows are taken in blocks, so that the float64 temporaries stay small, even for a tensor of several GiB."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    x, groups = inputs["x"], axes["hidden"] // 128
    y = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    scale = torch.empty(axes["rows"], groups, dtype=torch.float64, device=x.device)
    block = max(1, BLOCK_BYTES // (8 * axes["hidden"]))
    for rows, scaled, factor in zip(x.split(block), y.split(block), scale.split(block), strict=True):
        wide = rows.double().view(-1, groups, 128)
        factor.copy_(wide.abs().amax(-1).clamp_min(1e-4) / 448.0)
        scaled.copy_((wide / factor[..., None]).view(scaled.shape))
    return {"y": y, "scale": scale}
