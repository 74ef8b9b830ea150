"""Weights, cache and tokens. Weights are scaled so that no layer grows or dies, and attention has a few dozen carriers."""

from __future__ import annotations

import math

import torch

WIDTH, LATENT = 576, 512


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    a = axes

    def normal(scale: float, *shape: int) -> torch.Tensor:
        made = torch.empty(shape, device=device, dtype=dtype)
        for part in made.flatten(0, -2).split(1 << 12) if made.dim() > 1 else (made,):
            part.copy_(torch.randn(part.shape, generator=generator, device=device) * scale)
        return made

    fan = a["hidden"] ** -0.5
    norms = 1 + 0.2 * torch.randn(2 * a["layers"] + 1, a["hidden"], generator=generator, device=device)
    sharp = math.sqrt(math.log(max(a["tokens"] / 32, math.e))) / 3**0.5
    return {
        "token": tokens(a, generator, device),
        "embed": normal(1.0, a["vocab"], a["hidden"]),
        "norm": norms.to(dtype),
        "wq": normal(fan * sharp, a["layers"], a["heads"] * WIDTH, a["hidden"]),
        "cache": normal(1.0, a["layers"], a["batch"], a["tokens"], WIDTH),
        "wo": normal(2 * (a["heads"] * LATENT) ** -0.5, a["layers"], a["hidden"], a["heads"] * LATENT),
        "router": normal(fan, a["layers"], a["experts"], a["hidden"]),
        "up": normal(fan, a["layers"], a["experts"], 2 * a["inner"], a["hidden"]),
        "down": normal(2 * a["inner"] ** -0.5, a["layers"], a["experts"], a["hidden"], a["inner"]),
        "head": normal(fan, a["vocab"], a["hidden"]),
    }


def tokens(axes: dict[str, int], generator: torch.Generator, device: torch.device | str) -> torch.Tensor:
    return torch.randint(axes["vocab"], (axes["steps"], axes["batch"]), generator=generator, device=device)


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Other tokens, and a sixteenth of the cache drawn anew: every logit changes, and the weights stay."""
    cache = inputs["cache"]
    inputs["token"].copy_(tokens(axes, generator, cache.device))
    count = max(1, axes["tokens"] // 16)
    first = int(torch.randint(axes["tokens"] - count + 1, (1,), generator=generator, device=cache.device))
    piece = cache[:, :, first : first + count]
    piece.copy_(torch.randn(piece.shape, generator=generator, device=cache.device))
    return ["token", "cache"]
