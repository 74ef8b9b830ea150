"""Draws for a mixture of experts at decode: two different experts a token, shares that add up to one."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    batch, hidden, experts, inner = (axes[name] for name in ("batch", "hidden", "experts", "inner"))
    expert, share = draw_routing(batch, experts, generator, device)
    return {
        "x": draw_x(batch, hidden, generator, device).to(dtype),
        "expert": expert,
        "share": share.to(dtype),
        "up": draw_weights(experts, 2 * inner, hidden, 2.0, generator, device).to(dtype),
        "down": draw_weights(experts, hidden, inner, 1.0, generator, device).to(dtype),
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """New tokens and a new routing, the weights of a random eighth of the experts drawn anew."""
    x, up, down = inputs["x"], inputs["up"], inputs["down"]
    batch, hidden, experts, inner = (axes[name] for name in ("batch", "hidden", "experts", "inner"))
    x.copy_(draw_x(batch, hidden, generator, x.device))
    expert, share = draw_routing(batch, experts, generator, x.device)
    inputs["expert"].copy_(expert)
    inputs["share"].copy_(share)
    some = torch.randperm(experts, generator=generator, device=x.device)[: max(1, experts // 8)]
    up.index_copy_(0, some, draw_weights(len(some), 2 * inner, hidden, 2.0, generator, x.device).to(up.dtype))
    down.index_copy_(0, some, draw_weights(len(some), hidden, inner, 1.0, generator, x.device).to(down.dtype))
    return list(inputs)


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, all tokens to the first experts, all to the last ones, a share that is all of it, loud tokens."""
    base = make_inputs(axes, generator, device, dtype)
    first = torch.arange(2, device=device).expand_as(base["expert"])
    whole = torch.zeros_like(base["share"])
    whole[:, 1] = 1.0
    return {
        "zeros": {**base, "x": torch.zeros_like(base["x"])},
        "first_experts": {**base, "expert": first.contiguous()},
        "last_experts": {**base, "expert": (axes["experts"] - 1 - first).contiguous()},
        "one_share": {**base, "share": whole},
        "loud": {**base, "x": base["x"] * 30},
    }


def draw_x(batch: int, hidden: int, generator: torch.Generator, device: object) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    return torch.randn(batch, hidden, **options) * torch.exp2(torch.rand(batch, 1, **options) * 2 - 1)


def draw_routing(
    batch: int, experts: int, generator: torch.Generator, device: object
) -> tuple[torch.Tensor, torch.Tensor]:
    score = torch.randn(batch, experts, generator=generator, device=device)
    best = score.topk(2, dim=-1)
    return best.indices.contiguous(), torch.softmax(best.values, dim=-1)


def draw_weights(
    experts: int, rows: int, columns: int, scale: float, generator: torch.Generator, device: object
) -> torch.Tensor:
    return torch.randn(experts, rows, columns, generator=generator, device=device).mul_(scale * columns**-0.5)
