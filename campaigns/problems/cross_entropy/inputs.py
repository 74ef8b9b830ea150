"""Draws for cross-entropy: rows of different offset and temperature; the target is any token or a likely one."""

from __future__ import annotations

import torch

SMALL_VOCAB = 64
"""Below this a new target is often the old one."""


def make_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    logits = torch.empty(axes["rows"], axes["vocab"], device=device, dtype=dtype)
    for part in logits.split(256):
        part.copy_(draw_rows(len(part), axes["vocab"], generator, device, dtype))
    return {"logits": logits, "target": draw_target(logits, generator)}


def refresh(inputs: dict[str, torch.Tensor], axes: dict[str, int], generator: torch.Generator) -> list[str]:
    """Negate about half of the rows, draw an eighth of them anew (of a small vocabulary all), and new targets for all."""
    logits = inputs["logits"]
    rows, vocab = logits.shape
    logits.mul_(torch.randint(2, (rows, 1), generator=generator, device=logits.device).to(logits.dtype) * 2 - 1)
    shift = torch.randint(rows, (1,), generator=generator, device=logits.device)
    count = rows if vocab < SMALL_VOCAB else max(1, rows // 8)
    some = (torch.arange(count, device=logits.device) + shift) % rows
    logits.index_copy_(0, some, draw_rows(len(some), vocab, generator, logits.device, logits.dtype))
    inputs["target"].copy_(draw_target(logits, generator))
    return ["logits", "target"]


def edge_inputs(
    axes: dict[str, int], generator: torch.Generator, device: str, dtype: torch.dtype
) -> dict[str, dict[str, torch.Tensor]]:
    """Equal logits, offsets that must cancel, −inf masks, targets at either end."""
    base = make_inputs(axes, generator, device, dtype)
    logits, target = base["logits"], base["target"]
    masked = logits.clone()
    masked[:, axes["vocab"] // 2 + 1 :] = float("-inf")
    return {
        "zeros": {"logits": torch.zeros_like(logits), "target": target},
        "cancellation": {"logits": (logits.float() - 256.0).to(dtype), "target": target},
        "first_target": {"logits": masked, "target": torch.zeros_like(target)},
        "last_target": {"logits": logits, "target": torch.full_like(target, axes["vocab"] - 1)},
        "large": {"logits": logits * 100, "target": target},
    }


def draw_rows(rows: int, vocab: int, generator: torch.Generator, device: object, dtype: torch.dtype) -> torch.Tensor:
    options = {"generator": generator, "device": device}
    temperature = 0.5 + 2 * torch.rand(rows, 1, **options)
    offset = torch.randn(rows, 1, **options) * 10
    return torch.randn(rows, vocab, **options).mul_(temperature).add_(offset).to(dtype)


def draw_target(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One of eight random tokens: the best of them in half of the rows, the first in the others."""
    rows, vocab = logits.shape
    options = {"generator": generator, "device": logits.device}
    some = torch.randint(vocab, (rows, 8), **options)
    best = some.gather(-1, logits.gather(-1, some).argmax(-1, keepdim=True))[:, 0]
    return torch.where(torch.rand(rows, **options) < 0.5, best, some[:, 0])
