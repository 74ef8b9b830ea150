"""Sparse absorbed MLA decode in float64."""

from __future__ import annotations

import torch

LATENT = 512
SCALE = 192**-0.5


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    out = []
    for q, cache, indices in zip(inputs["q"], inputs["cache"], inputs["indices"], strict=True):
        picked = cache[indices.long()].double()
        weights = torch.softmax(q.double() @ picked.T * SCALE, dim=-1)
        out.append(weights @ picked[:, :LATENT])
    return {"out": torch.stack(out)}
