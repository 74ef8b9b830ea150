"""Draws for sparse MLA decode: a few dozen of the named tokens carry the result (see mla_decode), in no order."""

from __future__ import annotations

import math

import torch

WIDTH = 576
CARRIERS = 32
LONG_VALUES = 1 << 24
PIECE = 1 << 12


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    batch, heads, tokens, topk = (axes[name] for name in ("batch", "heads", "tokens", "topk"))
    magnitude = torch.exp2(torch.rand(1, generator=generator, device=device) * 2 - 1)
    cache = torch.empty(batch, tokens, WIDTH, device=device, dtype=dtype)
    for part in cache.split(PIECE, dim=1):
        part.copy_(draw_tokens(part.shape[1], batch, magnitude, generator))
    q = draw_q(batch, heads, topk, magnitude, generator).to(dtype)
    return {"q": q, "cache": cache, "indices": draw_indices(batch, tokens, topk, generator, device)}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """A new q, other tokens named, and a random eighth of the cache, contiguous, drawn anew."""
    q, cache, indices = inputs["q"], inputs["cache"], inputs["indices"]
    batch, tokens, _ = cache.shape
    topk = indices.shape[1]
    magnitude = cache[:, :PIECE].float().square().mean().sqrt().reshape(1)
    q.copy_(draw_q(batch, q.shape[1], topk, magnitude, generator))
    first = torch.randint(tokens, (1,), generator=generator, device=q.device)
    for piece in torch.arange(max(1, tokens // 8), device=q.device).split(PIECE):
        new = draw_tokens(len(piece), batch, magnitude, generator).to(cache.dtype)
        cache.index_copy_(1, (first + piece) % tokens, new)
    indices.copy_(draw_indices(batch, tokens, topk, generator, q.device))
    return ["q", "cache", "indices"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """The last tokens of the cache alone; for a short cache also no content, no preference and large scores."""
    base = make_inputs(axes, generator, device, dtype)
    tokens, topk = axes["tokens"], axes["topk"]
    end = torch.arange(tokens - topk, tokens, device=device, dtype=torch.int32).expand(axes["batch"], topk)
    last = {"last_tokens": {**base, "indices": end.flip(-1).contiguous()}}
    if base["cache"].numel() > LONG_VALUES:
        return last
    return {
        **last,
        "zeros": {**base, "cache": torch.zeros_like(base["cache"])},
        "no_preference": {**base, "q": torch.zeros_like(base["q"])},
        "large": {**base, "cache": base["cache"] * 8},
    }


def draw_indices(batch: int, tokens: int, topk: int, generator: torch.Generator, device: object) -> torch.Tensor:
    """``[batch, topk]`` different tokens of each sequence, in random order."""
    order = torch.rand(batch, tokens, generator=generator, device=device).argsort(-1)
    return order[:, :topk].to(torch.int32).contiguous()


def draw_tokens(tokens: int, batch: int, magnitude: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """``[batch, tokens, 576]``, each token with a length of its own (0.7 to 1.4 times the usual)."""
    options = {"generator": generator, "device": magnitude.device}
    length = torch.exp2(torch.rand(batch, tokens, 1, **options) - 0.5)
    return torch.randn(batch, tokens, WIDTH, **options).mul_(length * magnitude)


def draw_q(batch: int, heads: int, topk: int, magnitude: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """``[batch, heads, 576]``, each head with a temperature of its own."""
    options = {"generator": generator, "device": magnitude.device}
    sigma = math.sqrt(math.log(max(topk / CARRIERS, math.e)))
    temperature = 0.8 + 0.4 * torch.rand(batch, heads, 1, **options)
    q = torch.randn(batch, heads, WIDTH, **options)
    return q.mul_(temperature * sigma * math.sqrt(192 / WIDTH) / magnitude)
