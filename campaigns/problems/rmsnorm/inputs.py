"""Draws for RMSNorm: rows of different magnitude and offset, outlier channels, sections of different weight.

A row's mean square can then be guessed neither from its neighbours nor from a part of its columns.
"""

from __future__ import annotations

import torch

SECTIONS = 16


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    rows, hidden = axes["rows"], axes["hidden"]
    return {
        "x": draw_rows(rows, hidden, generator, device, dtype),
        "weight": draw_weight(hidden, generator, device, dtype),
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Move the rows, flip the signs of random channels, draw an eighth of the rows and all weights anew."""
    x, weight = inputs["x"], inputs["weight"]
    rows, hidden = x.shape
    every_row = torch.arange(rows, device=x.device)
    shift = torch.randint(rows, (1,), generator=generator, device=x.device)
    x.copy_(x.index_select(0, (every_row + shift) % rows))
    x.mul_(torch.randint(2, (hidden,), generator=generator, device=x.device).to(x.dtype) * 2 - 1)
    some = (every_row[: max(1, rows // 8)] + shift) % rows
    x.index_copy_(0, some, draw_rows(len(some), hidden, generator, x.device, x.dtype))
    weight.copy_(draw_weight(hidden, generator, x.device, x.dtype))
    return ["x", "weight"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, magnitudes whose squares are near the ends of float32, one value that is the whole sum, alternating signs."""
    rows, hidden = axes["rows"], axes["hidden"]
    base = make_inputs(axes, generator, device, dtype)
    x, weight = base["x"], base["weight"]
    lonely = torch.zeros_like(x)
    lonely[:, -1] = 3.0
    signs = 1 - 2 * (torch.arange(hidden, device=device) % 2)
    return {
        "zeros": {"x": torch.zeros_like(x), "weight": weight},
        "large": {"x": x * 1e12, "weight": weight},
        "small": {"x": x * 1e-6, "weight": weight},  # where the 1e-6 under the root decides
        "last_only": {"x": lonely, "weight": weight},
        "cancellation": {"x": (signs * 1000.0).to(dtype).expand(rows, hidden).contiguous(), "weight": weight},
    }


def draw_rows(rows: int, hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    """Rows of magnitude 1/8 to 8 with their own offset; about one channel in a hundred is eight times larger."""
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, hidden, **options)
    scale = torch.exp2(torch.rand(rows, 1, **options) * 6 - 3)
    offset = torch.randn(rows, 1, **options) * 0.5
    section = torch.exp2(torch.rand(SECTIONS, **options) * 4 - 2)
    channel = section[torch.arange(hidden, device=device) * SECTIONS // hidden]
    channel = channel * torch.where(torch.rand(hidden, **options) < 0.01, 8.0, 1.0)
    return x.add_(offset).mul_(scale).mul_(channel).to(dtype)


def draw_weight(hidden: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    sign = 1 - 2 * torch.randint(2, (hidden,), generator=generator, device=device)
    return ((0.5 + torch.rand(hidden, generator=generator, device=device)) * sign).to(dtype)
