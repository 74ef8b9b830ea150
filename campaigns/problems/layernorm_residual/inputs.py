"""Draws for LayerNorm with residual: rows of different magnitude and offset, and channels that stand out."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    rows, hidden = axes["rows"], axes["hidden"]
    return {
        "x": draw_rows(rows, hidden, generator, device, dtype),
        "residual": draw_rows(rows, hidden, generator, device, dtype),
        "weight": draw_vector(hidden, generator, device, dtype),
        "bias": draw_vector(hidden, generator, device, dtype),
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Move the rows of x against those of the residual, flip channels, draw an eighth of the rows and the vectors anew."""
    x, residual = inputs["x"], inputs["residual"]
    rows, hidden = x.shape
    every_row = torch.arange(rows, device=x.device)
    shift = 1 + torch.randint(max(1, rows - 1), (1,), generator=generator, device=x.device)
    x.copy_(x.index_select(0, (every_row + shift) % rows))
    x.mul_(torch.randint(2, (hidden,), generator=generator, device=x.device).to(x.dtype) * 2 - 1)
    some = (every_row[: max(1, rows // 8)] + shift) % rows
    residual.index_copy_(0, some, draw_rows(len(some), hidden, generator, x.device, x.dtype))
    inputs["weight"].copy_(draw_vector(hidden, generator, x.device, x.dtype))
    inputs["bias"].copy_(draw_vector(hidden, generator, x.device, x.dtype))
    return ["x", "residual", "weight", "bias"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, a constant row (no variance), a mean far above the spread, magnitudes near the ends of float32."""
    base = make_inputs(axes, generator, device, dtype)
    x, residual = base["x"], base["residual"]
    zero = torch.zeros_like(x)
    return {
        "zeros": {**base, "x": zero, "residual": zero},
        "no_variance": {**base, "x": zero + 2.0, "residual": zero + 1.0},
        "offset": {**base, "x": (x.float().clamp(-4, 4) + 8.0).to(dtype), "residual": zero},
        "large": {**base, "x": x * 1e12, "residual": residual * 1e12},
        "cancelling_sum": {**base, "residual": -x.roll(1, -1)},
    }


def draw_rows(rows: int, hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    """Rows of magnitude 1/4 to 4 with their own offset; about one channel in a hundred is eight times larger."""
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, hidden, **options)
    scale = torch.exp2(torch.rand(rows, 1, **options) * 4 - 2)
    offset = torch.randn(rows, 1, **options)
    channel = torch.where(torch.rand(hidden, **options) < 0.01, 8.0, 1.0)
    return x.add_(offset).mul_(scale).mul_(channel).to(dtype)


def draw_vector(hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(hidden, generator=generator, device=device).to(dtype)
