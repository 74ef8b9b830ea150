"""Draws for softmax: each row has its own offset and its own temperature, from nearly flat to a few winners."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    return {"x": draw_rows(axes["rows"], axes["columns"], generator, device, dtype)}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Move the rows, negate about half of them, draw an eighth of them anew."""
    x = inputs["x"]
    rows, columns = x.shape
    every_row = torch.arange(rows, device=x.device)
    shift = 1 + torch.randint(max(1, rows - 1), (1,), generator=generator, device=x.device)
    x.copy_(x.index_select(0, (every_row + shift) % rows))
    x.mul_(torch.randint(2, (rows, 1), generator=generator, device=x.device).to(x.dtype) * 2 - 1)
    some = (every_row[: max(1, rows // 8)] + shift) % rows
    x.index_copy_(0, some, draw_rows(len(some), columns, generator, x.device, x.dtype))
    return ["x"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Equal values, a common offset that must cancel, exponents that overflow, −inf masks, a winner in the last column."""
    x = make_inputs(axes, generator, device, dtype)["x"]
    columns = axes["columns"]
    masked = x.clone()
    masked[:, columns // 2 + 1 :] = float("-inf")
    first_masked = x.clone()
    first_masked[:, : columns // 2] = float("-inf")
    last = x.clone()
    last[:, -1] += 60.0
    return {
        "zeros": {"x": torch.zeros_like(x)},
        "cancellation": {"x": (x.float() - 4096.0).to(dtype)},
        "large": {"x": x * 1e4},
        "tail_masked": {"x": masked},
        "head_masked": {"x": first_masked},
        "last_wins": {"x": last},
    }


def draw_rows(rows: int, columns: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, columns, **options)
    temperature = 0.5 + 2 * torch.rand(rows, 1, **options)
    offset = torch.randn(rows, 1, **options) * 10
    return x.mul_(temperature).add_(offset).to(dtype)
