"""Draws for absorbed MLA decode, peaked so that a few dozen tokens carry the result.

With q and cache from N(0, 1) times s the scores have a standard deviation of σ = s · sqrt(576 / 192), and about
tokens · exp(−σ²) tokens carry the sum. σ is set so that this is near 32; otherwise the result would be close to
the mean of many tokens, which is nearly zero, and a wrong kernel would look right.
"""

from __future__ import annotations

import math

import torch

WIDTH = 576
LATENT = 512
CARRIERS = 32
LONG_VALUES = 1 << 24
PIECE = 1 << 12


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    batch, heads, tokens = axes["batch"], axes["heads"], axes["tokens"]
    options = {"generator": generator, "device": device}
    magnitude = torch.exp2(torch.rand(1, **options) * 2 - 1)
    cache = torch.empty(batch, tokens, WIDTH, device=device, dtype=dtype)
    for part in cache.split(PIECE, dim=1):
        part.copy_(draw_tokens(part.shape[1], batch, magnitude, generator))
    return {"q": draw_q(batch, heads, tokens, magnitude, generator).to(dtype), "cache": cache}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """A new q, which moves the weight to other tokens, and a random eighth of the cache, contiguous, drawn anew."""
    q, cache = inputs["q"], inputs["cache"]
    batch, tokens, _ = cache.shape
    magnitude = cache[:, :PIECE].float().square().mean().sqrt().reshape(1)
    q.copy_(draw_q(batch, q.shape[1], tokens, magnitude, generator))
    count = max(1, tokens // 8)
    first = torch.randint(tokens, (1,), generator=generator, device=q.device)
    some = (first + torch.arange(count, device=q.device)) % tokens
    cache.index_copy_(1, some, draw_tokens(count, batch, magnitude, generator).to(cache.dtype))
    return ["q", "cache"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """An empty cache, no preference, one winner at either end, a common part of all scores that must cancel.

    For a long cache, of which copies are dear, only those two that a long cache makes harder.
    """
    base = make_inputs(axes, generator, device, dtype)
    q, cache = base["q"], base["cache"]
    magnitude = cache[:, :PIECE].float().square().mean().sqrt()
    last = cache.clone()
    last[:, -1] = toward(q, 40.0)
    # In a RoPE channel, which enters the scores and not the result: every score grows by about 64.
    offset, q_offset = cache.clone(), q.clone()
    offset[..., -1] = 32.0 * magnitude
    q_offset[..., -1] = 64.0 * math.sqrt(192) / (32.0 * magnitude)
    hard = {"last_wins": {"q": q, "cache": last}, "cancellation": {"q": q_offset, "cache": offset}}
    if cache.numel() > LONG_VALUES:
        return hard
    first = cache.clone()
    first[:, 0] = toward(q, 40.0)
    return {
        **hard,
        "zeros": {"q": q, "cache": torch.zeros_like(cache)},
        "no_preference": {"q": torch.zeros_like(q), "cache": cache},
        "first_wins": {"q": q, "cache": first},
        "large": {"q": q, "cache": cache * 8},
    }


def draw_tokens(tokens: int, batch: int, magnitude: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """``[batch, tokens, 576]``, each token with a length of its own (0.7 to 1.4 times the usual)."""
    options = {"generator": generator, "device": magnitude.device}
    length = torch.exp2(torch.rand(batch, tokens, 1, **options) - 0.5)
    return torch.randn(batch, tokens, WIDTH, **options).mul_(length * magnitude)


def draw_q(
    batch: int, heads: int, tokens: int, magnitude: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """``[batch, heads, 576]``, each head with a temperature of its own."""
    options = {"generator": generator, "device": magnitude.device}
    sigma = math.sqrt(math.log(max(tokens / CARRIERS, math.e)))
    temperature = 0.8 + 0.4 * torch.rand(batch, heads, 1, **options)
    q = torch.randn(batch, heads, WIDTH, **options)
    return q.mul_(temperature * sigma * math.sqrt(192 / WIDTH) / magnitude)


def toward(q: torch.Tensor, score: float) -> torch.Tensor:
    """A token ``[batch, 576]`` along the mean of the heads, which gives a head of mean alignment that score."""
    mean = q.float().mean(1)
    return (mean * (score * math.sqrt(192) / mean.square().sum(-1, keepdim=True))).to(q.dtype)
