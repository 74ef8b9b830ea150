"""The model, with operators that can be swapped. One file, so that it is a baseline by itself.

``stack.json`` beside it, when it is there, says what is different: ``compile`` (the step through torch.compile),
``swapped`` (operator → kernel in a folder of its own), ``skipped`` (operators that do nothing: what the step then takes
less is their share), ``pieces`` (so many tokens of the cache at a time, as a first draft of a decoder does). Every
operator writes its output and returns nothing.

On a GPU the evaluator captures a call as a CUDA graph: nothing in here waits for the device or asks it for a value.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import torch

Tensor = torch.Tensor
HERE = os.path.dirname(os.path.abspath(__file__))
EPSILON = 1e-6
SCALE = 192**-0.5
LATENT, WIDTH = 512, 576


def rmsnorm(x: Tensor, weight: Tensor, y: Tensor) -> None:
    wide = x.float()
    variance = wide.pow(2).mean(-1, keepdim=True)
    y.copy_(weight * (wide * torch.rsqrt(variance + EPSILON)).to(x.dtype))


def mla_decode(q: Tensor, cache: Tensor, out: Tensor) -> None:
    scores = (q @ cache.mT).float() * SCALE
    out.copy_(torch.softmax(scores, dim=-1).to(q.dtype) @ cache[..., :LATENT])


def mla_decode_in(pieces: int) -> Callable[..., None]:
    """The cache in pieces of so many tokens, one after the other, with a running maximum: as one writes it at first."""

    def run(q: Tensor, cache: Tensor, out: Tensor) -> None:
        parts = cache.split(pieces, dim=1)
        most, total, found = attended_to(q, parts[0])
        for part in parts[1:]:
            top, sums, values = attended_to(q, part)
            new = torch.maximum(most, top)
            before, now = torch.exp(most - new), torch.exp(top - new)
            most, total, found = new, total * before + sums * now, found * before + values * now
        out.copy_(found / total)

    return run


def attended_to(q: Tensor, part: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of one piece: the greatest score, the sum of the weights under it, and the weighted sum of the values."""
    scores = (q @ part.mT).float() * SCALE
    top = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - top)
    return top, weights.sum(-1, keepdim=True), (weights.to(q.dtype) @ part[..., :LATENT]).float()


def moe(x: Tensor, expert: Tensor, share: Tensor, up: Tensor, down: Tensor, y: Tensor) -> None:
    """x [batch, hidden]; expert and share [batch, 2]: which two experts a token takes, and how much of each."""
    gate, value = (up[expert] @ x[:, None, :, None]).squeeze(-1).chunk(2, dim=-1)
    inner = torch.nn.functional.silu(gate) * value
    y.copy_(((down[expert] @ inner[..., None]).squeeze(-1) * share[..., None]).sum(1))


def lm_head(x: Tensor, head: Tensor, logits: Tensor) -> None:
    logits.copy_(x @ head.T)


OPERATORS: dict[str, Callable[..., None]] = {
    "rmsnorm": rmsnorm,
    "mla_decode": mla_decode,
    "moe": moe,
    "lm_head": lm_head,
}
INPUT_COUNT = {"rmsnorm": 2, "mla_decode": 2, "moe": 5, "lm_head": 2}


def kernel_from(operator: str, kernel: dict[str, Any]) -> Callable[..., None]:
    """An approved kernel: a shared object with ``run(inputs…, outputs…, axes…)``, on a GPU then a stream, or a Python file
    with ``run``."""
    folder = os.path.join(HERE, kernel["folder"])
    path = os.path.join(folder, kernel["entry"])
    if not path.endswith(".so"):
        return python_run(folder, path, f"swapped_{operator}")
    function = ctypes.CDLL(path).run
    function.restype = None
    axes = [ctypes.c_int64(value) for value in kernel["axes"]]

    def run(*tensors: Tensor) -> None:
        last = [ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)] if tensors[0].is_cuda else []
        function(*[ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors], *axes, *last)

    return run


def python_run(folder: str, path: str, name: str) -> Callable[..., None]:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    run: Callable[..., None] = module.run
    return run


def opaque(run: Callable[..., None]) -> Callable[..., None]:
    """torch.compile does not look into a kernel: it compiles what lies between."""
    return torch.compiler.disable(run)


def nothing(*tensors: Tensor) -> None:
    """An operator left out. Its output keeps ordinary values, since the operators after it must do their usual work."""


class Model:
    def __init__(self, stack: dict[str, Any]) -> None:
        self.operators = dict(OPERATORS)
        if pieces := stack.get("pieces"):
            self.operators["mla_decode"] = mla_decode_in(pieces)
        for operator, kernel in stack.get("swapped", {}).items():
            self.operators[operator] = opaque(kernel_from(operator, kernel))
        for operator in stack.get("skipped", []):
            self.operators[operator] = opaque(nothing) if stack.get("compile") else nothing
        self.step = torch.compile(self.one_step, dynamic=False) if stack.get("compile") else self.one_step
        self.scratch: dict[Any, dict[str, Tensor]] = {}

    def buffers(self, embed: Tensor, batch: int, heads: int) -> dict[str, Tensor]:
        """Reused from call to call, filled with ordinary values once."""
        key = (embed.device, embed.dtype, batch, embed.shape[1], heads)
        if key not in self.scratch:
            shapes = {
                "normed": (batch, embed.shape[1]),
                "attended": (batch, heads, LATENT),
                "mixed": (batch, embed.shape[1]),
            }
            self.scratch[key] = {n: torch.ones(s, dtype=embed.dtype, device=embed.device) for n, s in shapes.items()}
        return self.scratch[key]

    def one_step(
        self, carry: Tensor, token: Tensor, weights: dict[str, Tensor], buffers: dict[str, Tensor], logits: Tensor
    ) -> Tensor:
        """One token of each sequence. ``carry`` stands for what a real decoder carries on in its cache."""
        normed, attended, mixed = buffers["normed"], buffers["attended"], buffers["mixed"]
        start = weights["embed"][token]
        x = start + carry
        layers, batch, heads = weights["wq"].shape[0], x.shape[0], attended.shape[1]
        for layer in range(layers):
            self.operators["rmsnorm"](x, weights["norm"][2 * layer], normed)
            q = (normed @ weights["wq"][layer].T).view(batch, heads, WIDTH)
            self.operators["mla_decode"](q, weights["cache"][layer], attended)
            x = x + attended.view(batch, -1) @ weights["wo"][layer].T
            self.operators["rmsnorm"](x, weights["norm"][2 * layer + 1], normed)
            # Routed by the token and not by x: no rounding anywhere flips an expert, so that errors stay comparable.
            score, expert = (start @ weights["router"][layer].T).topk(2, dim=-1)
            share = torch.softmax(score.float(), dim=-1).to(x.dtype)
            self.operators["moe"](normed, expert, share, weights["up"][layer], weights["down"][layer], mixed)
            x = x + mixed
        self.operators["rmsnorm"](x, weights["norm"][2 * layers], normed)
        self.operators["lm_head"](normed, weights["head"], logits)
        return normed * 0.5

    def call(self, token: Tensor, weights: dict[str, Tensor], logits: Tensor) -> None:
        batch, heads = token.shape[1], weights["wq"].shape[1] // WIDTH
        buffers = self.buffers(weights["embed"], batch, heads)
        carry = torch.zeros_like(buffers["normed"])
        for step in range(token.shape[0]):
            carry = self.step(carry, token[step], weights, buffers, logits[step])


def configured() -> dict[str, Any]:
    path = os.path.join(HERE, "stack.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        stack: dict[str, Any] = json.load(file)
    return stack


MODEL = Model(configured())
NAMES = ("embed", "norm", "wq", "cache", "wo", "router", "up", "down", "head")


def run(token: Tensor, *tensors: Tensor) -> None:
    weights, logits = dict(zip(NAMES, tensors, strict=False)), tensors[-1]
    MODEL.call(token, weights, logits)
