"""Draws for a mixture of experts: some experts far more popular than others, and all in use where tokens are enough."""

from __future__ import annotations

import torch


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    tokens, experts, topk, d, f = (axes[name] for name in ("tokens", "experts", "topk", "d", "f"))
    options = {"generator": generator, "device": device}
    chosen, weights = draw_routing(tokens, experts, topk, generator, device)
    return {
        "x": draw_tokens(tokens, d, generator, device).to(dtype),
        "w13": (torch.randn(experts, 2 * f, d, **options) * (2 * d**-0.5)).to(dtype),
        "w2": (torch.randn(experts, d, f, **options) * f**-0.5).to(dtype),
        "chosen": chosen,
        "weights": weights,
    }


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """New tokens and a new routing, the weights of a random eighth of the experts drawn anew."""
    x, w13, w2 = inputs["x"], inputs["w13"], inputs["w2"]
    tokens, experts, topk, d, f = (axes[name] for name in ("tokens", "experts", "topk", "d", "f"))
    options = {"generator": generator, "device": x.device}
    x.copy_(draw_tokens(tokens, d, generator, x.device))
    chosen, weights = draw_routing(tokens, experts, topk, generator, x.device)
    inputs["chosen"].copy_(chosen)
    inputs["weights"].copy_(weights)
    some = torch.randperm(experts, **options)[: max(1, experts // 8)]
    w13.index_copy_(0, some, (torch.randn(len(some), 2 * f, d, **options) * (2 * d**-0.5)).to(w13.dtype))
    w2.index_copy_(0, some, (torch.randn(len(some), d, f, **options) * f**-0.5).to(w2.dtype))
    return list(inputs)


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Zeros, all tokens to the same experts, all to the last ones, one token far larger than the others."""
    base = make_inputs(axes, generator, device, dtype)
    first = torch.arange(axes["topk"], device=device, dtype=torch.int32).expand_as(base["chosen"])
    loud = base["x"].clone()
    loud[-1] *= 30
    return {
        "zeros": {**base, "x": torch.zeros_like(base["x"])},
        "first_experts": {**base, "chosen": first.contiguous()},
        "last_experts": {**base, "chosen": (axes["experts"] - 1 - first).contiguous()},
        "one_loud_token": {**base, "x": loud},
    }


def draw_tokens(tokens: int, d: int, generator: torch.Generator, device: object) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    return torch.randn(tokens, d, **options) * torch.exp2(torch.rand(tokens, 1, **options) * 2 - 1)


def draw_routing(
    tokens: int, experts: int, topk: int, generator: torch.Generator, device: object
) -> tuple[torch.Tensor, torch.Tensor]:
    """Different experts for each token by skewed popularity; ``ceil(experts / topk)`` random tokens then take them all in turn.

    So ``min(experts, tokens · topk)`` experts are in use, on which the floor of the problem rests.
    """
    options = {"generator": generator, "device": device}
    popularity = torch.randn(experts, **options)
    noise = -torch.log(-torch.log(torch.rand(tokens, experts, **options).clamp(1e-6, 1 - 1e-6)))
    chosen = (popularity + noise).topk(topk, dim=-1).indices
    turns = min(tokens, -(-experts // topk))
    order = torch.randperm(experts, **options)
    at = torch.randperm(tokens, **options)[:turns]
    chosen[at] = order[torch.arange(turns * topk, device=device) % experts].view(turns, topk)
    weights = torch.softmax(torch.randn(tokens, topk, **options), dim=-1)
    return chosen.to(torch.int32).contiguous(), weights
