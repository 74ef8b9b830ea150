"""Runs an imported problem once or twice, in a sandbox, to see what it takes and gives.

The module under question defines ``_draw(args, device, seed)`` and ``_answer(inputs, args, wide)``; see ``campaigns/intake``.
"""

from __future__ import annotations

import time
from typing import Any

from .link import Link
from .run_torch import imported_torch, load_module
from .serve import describe

MAX_TENSORS = 128


class Host:
    def __init__(self, config: dict[str, Any]) -> None:
        torch = imported_torch()
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.module = load_module("problem_source", config["source"])

    def handle(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["do"] == "constants":
            return {"constants": self.constants(message["names"])}
        return self.case(message["args"], message["idle"])

    def constants(self, names: list[str]) -> dict[str, int]:
        values = {name: getattr(self.module, name, None) for name in names}
        return {name: v for name, v in values.items() if type(v) is int and 1 <= v < 1 << 40}

    def case(self, args: dict[str, Any], idle: list[str]) -> dict[str, Any]:
        """One draw and its answer: names, types and shapes; the error of its own precision; inputs without influence."""
        inputs, other = self.module._draw(args, "cpu", 1), self.module._draw(args, "cpu", 2)
        if list(inputs) != list(other):
            raise ValueError(f"two draws gave different inputs: {list(inputs)} and {list(other)}")
        self.tensors("input", inputs)
        began = time.monotonic()
        outputs = self.module._answer(inputs, args, False)
        seconds = time.monotonic() - began
        self.tensors("output", outputs)
        writes = self.written(inputs, args)
        errors, why = self.own_errors(inputs, args, outputs)
        return {
            "inputs": [self.describe(name, t) for name, t in inputs.items()],
            "outputs": [self.describe(name, t) for name, t in outputs.items()],
            "seconds": seconds,
            "errors": errors,
            "not_wide": why,
            "writes": writes,
            "idle": [name for name in idle if self.is_idle(name, inputs, args, outputs)],
            "notes": list(getattr(self.module, "_NOTES", [])),
        }

    def tensors(self, what: str, found: Any) -> None:
        for name, value in found.items():
            if not isinstance(value, self.torch.Tensor):
                raise TypeError(f"{what} {name} is a {type(value).__name__}; only tensors can be {what}s")
            if value.numel() == 0:
                raise ValueError(f"{what} {name} is empty: its shape is {list(value.shape)}")
            if value.is_complex() or value.is_sparse or value.is_quantized:
                raise TypeError(f"{what} {name} is complex, sparse or quantised: such tensors cannot be judged")
        if not found:
            raise ValueError(f"there is no {what} tensor")
        if len(found) > MAX_TENSORS:
            raise ValueError(f"{len(found)} {what} tensors; at most {MAX_TENSORS}")

    def written(self, inputs: Any, args: Any) -> list[str]:
        """Names of the inputs that the source writes to, when it gets them and not copies."""
        kept = {name: tensor.clone() for name, tensor in inputs.items()}
        self.module._CLONE = False
        try:
            self.module._answer(inputs, args, False)
        finally:
            self.module._CLONE = True
        changed = [name for name, before in kept.items() if not self.torch.equal(before, inputs[name])]
        for name in changed:
            inputs[name].copy_(kept[name])
        return changed

    def describe(self, name: str, tensor: Any) -> list[Any]:
        return [name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]

    def own_errors(self, inputs: Any, args: Any, outputs: Any) -> tuple[dict[str, float] | None, str]:
        """max |own − float64| ÷ (RMS + |float64|) of each output, or why there is no answer in float64."""
        try:
            wide = self.module._answer(inputs, args, True)
        except Exception as problem:
            return None, f"{type(problem).__name__}: {str(problem)[:300]}"
        errors = {}
        for name, own in outputs.items():
            true = wide[name].double()
            if true.shape != own.shape:
                return None, f"output {name} has another shape in float64"
            rms = true.square().mean().sqrt()
            found = float(((own.double() - true).abs() / (rms + true.abs() + 1e-300)).max())
            if not found < float("inf"):
                return None, "the answer is not finite"
            errors[name] = found
        return errors, ""

    def is_idle(self, name: str, inputs: Any, args: Any, outputs: Any) -> bool:
        torch, tensor = self.torch, inputs[name]
        moved = tensor.flip(0) + 1 if tensor.ndim and tensor.is_floating_point() else tensor + 1
        try:
            after = self.module._answer({**inputs, name: moved.to(tensor.dtype)}, args, False)
        except Exception:
            return False
        return all(torch.equal(after[n], value) for n, value in outputs.items())


def main(config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    try:
        host = Host(config)
    except BaseException as error:
        link.reply({"id": config["hello"], **describe(error)})
        return
    link.reply({"id": config["hello"], "ok": True})
    while True:
        message, _ = link.receive()
        try:
            answer = {"ok": True, **host.handle(message)}
        except BaseException as error:
            answer = describe(error)
        link.reply({"id": message["id"], **answer})
