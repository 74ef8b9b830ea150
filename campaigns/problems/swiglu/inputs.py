"""Draws for SwiGLU: gates on both sides of zero, some saturated, rows of different magnitude."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    rows, hidden = axes["rows"], axes["hidden"]
    return {name: draw_rows(rows, hidden, generator, device, dtype) for name in ("gate", "up")}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Move the rows of both against each other, flip channels, draw an eighth of the rows anew."""
    rows, hidden = axes["rows"], axes["hidden"]
    for tensor in inputs.values():
        every_row = torch.arange(rows, device=tensor.device)
        shift = torch.randint(rows, (1,), generator=generator, device=tensor.device)
        tensor.copy_(tensor.index_select(0, (every_row + shift) % rows))
        tensor.mul_(torch.randint(2, (hidden,), generator=generator, device=tensor.device).to(tensor.dtype) * 2 - 1)
        some = (every_row[: max(1, rows // 8)] + shift) % rows
        tensor.index_copy_(0, some, draw_rows(len(some), hidden, generator, tensor.device, tensor.dtype))
    return list(inputs)


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, gates whose exponential overflows on either side, products near the end of float32."""
    base = make_inputs(axes, generator, device, dtype)
    gate, up = base["gate"], base["up"]
    return {
        "zeros": {"gate": torch.zeros_like(gate), "up": up},
        "saturated": {"gate": gate.sign() * 200 + gate, "up": up},
        "very_negative": {"gate": -gate.abs() - 150, "up": up},
        "large": {"gate": gate * 1e15, "up": up * 1e15},
    }


def draw_rows(rows: int, hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, hidden, **options)
    return x.mul_(torch.exp2(torch.rand(rows, 1, **options) * 3 - 1)).to(dtype)
