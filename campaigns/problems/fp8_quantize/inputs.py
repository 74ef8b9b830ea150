"""Draws for FP8 quantisation: groups of very different magnitude, some with one value that stands out."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    return {"x": draw_rows(axes["rows"], axes["hidden"], generator, device, dtype)}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Move the rows, flip the signs of random channels, draw an eighth of the rows anew."""
    x = inputs["x"]
    rows, hidden = x.shape
    every_row = torch.arange(rows, device=x.device)
    shift = 1 + torch.randint(max(1, rows - 1), (1,), generator=generator, device=x.device)
    x.copy_(x.index_select(0, (every_row + shift) % rows))
    x.mul_(torch.randint(2, (hidden,), generator=generator, device=x.device).to(x.dtype) * 2 - 1)
    some = (every_row[: max(1, rows // 8)] + shift) % rows
    x.index_copy_(0, some, draw_rows(len(some), hidden, generator, x.device, x.dtype))
    return ["x"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, a group below the smallest scale, values at the border of overflow, the largest value in the last place."""
    x = make_inputs(axes, generator, device, dtype)["x"]
    last = x.clone()
    last[:, 127::128] = 4096.0
    return {
        "zeros": {"x": torch.zeros_like(x)},
        "tiny": {"x": x * 1e-5},
        "large": {"x": x * 1e20},
        "last_is_largest": {"x": last},
        "one_magnitude": {"x": torch.where(x < 0, -1.0, 1.0).to(dtype)},
    }


def draw_rows(rows: int, hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, hidden // 128, 128, **options)
    x.mul_(torch.exp2(torch.rand(rows, hidden // 128, 1, **options) * 8 - 4))
    x[..., :1].mul_(torch.where(torch.rand(rows, hidden // 128, 1, **options) < 0.1, 20.0, 1.0))
    return x.view(rows, hidden).to(dtype)
