"""The same decoder in float64, written apart from ``model.py``."""

from __future__ import annotations

import torch

WIDTH, LATENT = 576, 512


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    w = {name: tensor if tensor.dtype == torch.int64 else tensor.double() for name, tensor in inputs.items()}
    carry = torch.zeros(axes["batch"], axes["hidden"], dtype=torch.float64, device=w["embed"].device)
    logits = []
    for token in w["token"]:
        start = w["embed"][token]
        x = start + carry
        for layer in range(axes["layers"]):
            x = x + attention(norm(x, w["norm"][2 * layer]), w, layer)
            x = x + experts(norm(x, w["norm"][2 * layer + 1]), start, w, layer)
        last = norm(x, w["norm"][-1])
        logits.append(torch.einsum("bh,vh->bv", last, w["head"]))
        carry = 0.5 * last
    return {"logits": torch.stack(logits)}


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def attention(x: torch.Tensor, w: dict[str, torch.Tensor], layer: int) -> torch.Tensor:
    q = torch.einsum("bh,qh->bq", x, w["wq"][layer]).unflatten(-1, (-1, WIDTH))
    cache = w["cache"][layer]
    weight = torch.softmax(torch.einsum("bnd,btd->bnt", q, cache) / 192**0.5, dim=-1)
    out = torch.einsum("bnt,btd->bnd", weight, cache[..., :LATENT])
    return torch.einsum("bo,ho->bh", out.flatten(1), w["wo"][layer])


def experts(x: torch.Tensor, start: torch.Tensor, w: dict[str, torch.Tensor], layer: int) -> torch.Tensor:
    rows = []
    for row, first in zip(x, start, strict=True):
        score, chosen = (w["router"][layer] @ first).topk(2)
        total = torch.zeros_like(row)
        for share, expert in zip(torch.softmax(score, 0), chosen, strict=True):
            gate, value = (w["up"][layer, expert] @ row).chunk(2)
            total = total + share * (w["down"][layer, expert] @ (torch.nn.functional.silu(gate) * value))
        rows.append(total)
    return torch.stack(rows)
