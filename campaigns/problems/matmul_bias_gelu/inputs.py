"""Draws for a linear layer: sums on both sides of zero and of different magnitude from row to row."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    m, n, k = axes["m"], axes["n"], axes["k"]
    return {
        "x": draw(m, k, 1.0, generator, device, dtype),
        "weight": draw(n, k, k**-0.5, generator, device, dtype),
        "bias": torch.randn(n, generator=generator, device=device).to(dtype),
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """New x and bias, the rows of the weight moved, an eighth of them drawn anew."""
    x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
    n, k = weight.shape
    x.copy_(draw(*x.shape, 1.0, generator, x.device, x.dtype))
    bias.copy_(torch.randn(n, generator=generator, device=x.device))
    every_row = torch.arange(n, device=x.device)
    shift = torch.randint(n, (1,), generator=generator, device=x.device)
    some = (every_row[: max(1, n // 8)] + shift) % n
    weight.index_copy_(0, some, draw(len(some), k, k**-0.5, generator, x.device, x.dtype))
    return ["x", "weight", "bias"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, sums far in the tails of GELU, large values."""
    base = make_inputs(axes, generator, device, dtype)
    x, weight = base["x"], base["weight"]
    return {
        "zeros": {**base, "x": torch.zeros_like(x)},
        "tails": {**base, "x": x * 16},
        "positive": {**base, "x": x.abs(), "weight": weight.abs()},
        "large": {**base, "x": x * 1e9, "weight": weight * 1e9},
    }


def draw(
    rows: int, columns: int, scale: float, generator: torch.Generator, device: object, dtype: torch.dtype
) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    row = scale * torch.exp2(torch.rand(rows, 1, **options) * 2 - 1)
    return torch.randn(rows, columns, **options).mul_(row).to(dtype)
