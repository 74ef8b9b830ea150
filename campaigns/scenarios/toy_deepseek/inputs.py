"""Weights, cache and tokens. Weights are scaled so that no layer grows or dies, and attention has a few dozen carriers."""

from __future__ import annotations

import math

import torch

WIDTH, LATENT = 576, 512
CLEAR = 0.02
"""Of the best expert's score: bfloat16 rounds by a 256th at most."""


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
    embed, router = normal(1.0, a["vocab"], a["hidden"]), normal(fan, a["layers"], a["experts"], a["hidden"])
    return {
        "token": tokens(embed, router, a, generator),
        "embed": embed,
        "norm": norms.to(dtype),
        "wq": normal(fan * sharp, a["layers"], a["heads"] * WIDTH, a["hidden"]),
        "cache": normal(1.0, a["layers"], a["batch"], a["tokens"], WIDTH),
        "wo": normal(2 * (a["heads"] * LATENT) ** -0.5, a["layers"], a["hidden"], a["heads"] * LATENT),
        "router": router,
        "up": normal(fan, a["layers"], a["experts"], 2 * a["inner"], a["hidden"]),
        "down": normal(2 * a["inner"] ** -0.5, a["layers"], a["experts"], a["hidden"], a["inner"]),
        "head": normal(fan, a["vocab"], a["hidden"]),
    }


def tokens(embed: torch.Tensor, router: torch.Tensor, axes: dict[str, int], generator: torch.Generator) -> torch.Tensor:
    """Drawn among those whose two experts no rounding changes, in any layer: a flip is no error of a kernel, and it would
    be the largest of all."""
    scores = embed.float() @ router.float().flatten(0, 1).T
    first = scores.unflatten(-1, router.shape[:2]).topk(min(3, axes["experts"]), dim=-1).values
    if axes["experts"] > 2:
        gaps = torch.minimum(first[..., 0] - first[..., 1], first[..., 1] - first[..., 2])
    else:
        gaps = first[..., 0] - first[..., -1]
    clear = (gaps > CLEAR * first[..., 0].abs()).all(-1).nonzero().flatten()
    if not len(clear):
        clear = gaps.amin(-1).argmax().reshape(1)
    chosen = torch.randint(len(clear), (axes["steps"], axes["batch"]), generator=generator, device=embed.device)
    return clear[chosen]


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Other tokens, and a sixteenth of the cache drawn anew: every logit changes, and the weights stay."""
    cache = inputs["cache"]
    inputs["token"].copy_(tokens(inputs["embed"], inputs["router"], axes, generator))
    count = max(1, axes["tokens"] // 16)
    first = int(torch.randint(axes["tokens"] - count + 1, (1,), generator=generator, device=cache.device))
    piece = cache[:, :, first : first + count]
    piece.copy_(torch.randn(piece.shape, generator=generator, device=cache.device))
    return ["token", "cache"]
