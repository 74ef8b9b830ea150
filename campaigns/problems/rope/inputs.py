"""Draws for rotary embedding: a run of positions that begins anywhere, heads of different magnitude."""

from __future__ import annotations

import torch

BASE = 10_000.0


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    cos, sin = draw_angles(axes["tokens"], axes["dim"], generator, device)
    x = draw_tokens(axes["tokens"], axes["heads"], axes["dim"], generator, device, dtype)
    return {"x": x, "cos": cos, "sin": sin}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Other positions, tokens moved, signs of random channels flipped, an eighth of the tokens drawn anew."""
    x = inputs["x"]
    tokens, heads, dim = x.shape
    every = torch.arange(tokens, device=x.device)
    shift = torch.randint(tokens, (1,), generator=generator, device=x.device)
    x.copy_(x.index_select(0, (every + shift) % tokens))
    x.mul_(torch.randint(2, (dim,), generator=generator, device=x.device).to(x.dtype) * 2 - 1)
    some = (every[: max(1, tokens // 8)] + shift) % tokens
    x.index_copy_(0, some, draw_tokens(len(some), heads, dim, generator, x.device, x.dtype))
    cos, sin = draw_angles(tokens, dim, generator, x.device)
    inputs["cos"].copy_(cos)
    inputs["sin"].copy_(sin)
    return ["x", "cos", "sin"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, no rotation, a quarter turn, large and tiny values."""
    base = make_inputs(axes, generator, device, dtype)
    one, zero = torch.ones_like(base["cos"]), torch.zeros_like(base["cos"])
    return {
        "zeros": {**base, "x": torch.zeros_like(base["x"])},
        "no_rotation": {**base, "cos": one, "sin": zero},
        "quarter_turn": {**base, "cos": zero, "sin": one},
        "large": {**base, "x": base["x"] * 1e18},
        "small": {**base, "x": base["x"] * 1e-18},
    }


def draw_tokens(
    tokens: int, heads: int, dim: int, generator: torch.Generator, device: object, dtype: torch.dtype
) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    scale = torch.exp2(torch.rand(tokens, heads, 1, **options) * 4 - 2)
    return torch.randn(tokens, heads, dim, **options).mul_(scale).to(dtype)


def draw_angles(tokens: int, dim: int, generator: torch.Generator, device: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine ``[tokens, dim // 2]`` in float32 for consecutive positions from a random one on."""
    first = torch.randint(100_000, (1, 1), generator=generator, device=device)
    position = (first + torch.arange(tokens, device=device)[:, None]).double()
    angle = position * BASE ** (-torch.arange(0, dim, 2, device=device).double() / dim)
    return angle.cos().float(), angle.sin().float()
