"""SwiGLU in float64."""

from __future__ import annotations

import torch

BLOCK = 1 << 21
"""Values are taken in blocks, so that the float64 temporaries stay small, even for a tensor of several GiB."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    gate, up = inputs["gate"], inputs["up"]
    y = torch.empty(gate.shape, dtype=torch.float64, device=gate.device)
    for g, u, out in zip(gate.view(-1).split(BLOCK), up.view(-1).split(BLOCK), y.view(-1).split(BLOCK), strict=True):
        out.copy_(g.double() * torch.sigmoid(g.double()) * u.double())
    return {"y": y}
