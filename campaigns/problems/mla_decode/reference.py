"""Absorbed MLA decode in float64."""

from __future__ import annotations

import torch

LATENT = 512
SCALE = 192**-0.5
CHUNK = 4096
"""Tokens are taken in chunks: the float64 copy of a cache of several GiB is never whole, and small ones are reused."""


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    q = inputs["q"].double()
    chunks = inputs["cache"].split(CHUNK, dim=1)
    scores = torch.cat([q @ chunk.double().mT for chunk in chunks], dim=-1) * SCALE
    weights = torch.softmax(scores, dim=-1).split(CHUNK, dim=-1)
    out = sum(w @ chunk[..., :LATENT].double() for w, chunk in zip(weights, chunks, strict=True))
    return {"out": out}
