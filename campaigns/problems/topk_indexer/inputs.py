"""Draws for the indexer, with a gap below the last chosen token, so that honest rounding cannot change the choice."""

from __future__ import annotations

import torch

CHUNK = 1 << 16
PIECE = 1 << 14


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    batch, heads, tokens, dim = (axes[name] for name in ("batch", "heads", "tokens", "dim"))
    keys = torch.empty(batch, tokens, dim, device=device, dtype=dtype)
    for part in keys.split(PIECE, dim=1):
        part.copy_(draw_keys(batch, part.shape[1], dim, generator, device))
    inputs = {"q": torch.empty(batch, heads, dim, device=device, dtype=dtype), "keys": keys}
    inputs["weights"] = torch.empty(batch, heads, device=device)
    draw_query(inputs, generator)
    open_gap(inputs, axes["topk"])
    return inputs


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """A new query, and the keys of a random quarter of the tokens, contiguous, drawn anew."""
    keys = inputs["keys"]
    batch, tokens, dim = keys.shape
    first = torch.randint(tokens, (1,), generator=generator, device=keys.device)
    for piece in torch.arange(max(1, tokens // 4), device=keys.device).split(PIECE):
        new = draw_keys(batch, len(piece), dim, generator, keys.device)
        keys.index_copy_(1, (first + piece) % tokens, new.to(keys.dtype))
    draw_query(inputs, generator)
    open_gap(inputs, axes["topk"])
    return ["q", "keys", "weights"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """The chosen tokens all at the end or all at the start; large and tiny scores."""
    base = make_inputs(axes, generator, device, dtype)
    order = scores_of(base).argsort(dim=-1)[..., None].expand_as(base["keys"])
    ascending = base["keys"].gather(1, order)
    return {
        "chosen_last": {**base, "keys": ascending},
        "chosen_first": {**base, "keys": ascending.flip(1).contiguous()},
        "large": {**base, "keys": base["keys"] * 1e6},
        "small": {**base, "keys": base["keys"] * 1e-6},
    }


def draw_keys(batch: int, tokens: int, dim: int, generator: torch.Generator, device: object) -> torch.Tensor:
    return torch.randn(batch, tokens, dim, generator=generator, device=device)


def draw_query(inputs: dict[str, torch.Tensor], generator: torch.Generator) -> None:
    """A new q and new positive weights, of a random magnitude: no fixed threshold is right."""
    q, weights = inputs["q"], inputs["weights"]
    options = {"generator": generator, "device": q.device}
    q.copy_(torch.randn(q.shape, **options) * torch.exp2(torch.rand(1, **options) * 4 - 2))
    weights.copy_(torch.exp2(torch.rand(weights.shape, **options) * 2 - 1) / weights.shape[1])


def scores_of(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """``[batch, tokens]`` in float32."""
    q, weights = inputs["q"].float(), inputs["weights"][:, None, :]
    parts = [weights @ torch.relu(q @ keys.float().mT) for keys in inputs["keys"].split(CHUNK, dim=1)]
    return torch.cat(parts, dim=-1)[:, 0]


def open_gap(inputs: dict[str, torch.Tensor], topk: int) -> None:
    """Empty the keys of the tokens that come next after the chosen ones (score 0): an eighth as many as are chosen."""
    keys = inputs["keys"]
    tokens = keys.shape[1]
    near = max(1, min(topk // 8, (tokens - topk) // 2))
    order = scores_of(inputs).topk(topk + near, dim=-1).indices[:, topk:]
    keys.scatter_(1, order[..., None].expand(-1, -1, keys.shape[2]), 0.0)
