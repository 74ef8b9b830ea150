"""Draws for an LM head: rows of x of different magnitude, tokens of different length."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    batch, hidden, vocab = axes["batch"], axes["hidden"], axes["vocab"]
    return {
        "x": draw_x(batch, hidden, generator, device).to(dtype),
        "head": draw_head(vocab, hidden, generator, device).to(dtype),
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """A new x, and a random eighth of the weight's rows drawn anew."""
    x, head = inputs["x"], inputs["head"]
    vocab, hidden = head.shape
    x.copy_(draw_x(x.shape[0], hidden, generator, x.device))
    first = torch.randint(vocab, (1,), generator=generator, device=x.device)
    some = (first + torch.arange(max(1, vocab // 8), device=x.device)) % vocab
    head.index_copy_(0, some, draw_head(len(some), hidden, generator, x.device).to(head.dtype))
    return ["x", "head"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, a sum that lies in the last column alone, large magnitudes."""
    base = make_inputs(axes, generator, device, dtype)
    x = base["x"]
    last = torch.zeros_like(x)
    last[:, -1] = 3.0
    return {
        "zeros": {**base, "x": torch.zeros_like(x)},
        "last_only": {**base, "x": last},
        "large": {**base, "x": x * 1e12},
    }


def draw_x(batch: int, hidden: int, generator: torch.Generator, device: object) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    return torch.randn(batch, hidden, **options) * torch.exp2(torch.rand(batch, 1, **options) * 2 - 1)


def draw_head(vocab: int, hidden: int, generator: torch.Generator, device: object) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    length = torch.exp2(torch.rand(vocab, 1, **options) * 2 - 1)
    return torch.randn(vocab, hidden, **options).mul_(length * hidden**-0.5)
