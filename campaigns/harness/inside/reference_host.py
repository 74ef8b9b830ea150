"""Draws inputs and computes expected outputs with the problem's own ``inputs.py`` and ``reference.py``.

It runs in a sandbox of its own, never beside a candidate, and only the evaluator gets what it writes.
"""

from __future__ import annotations

import time
from typing import Any

from .link import Link, map_memory
from .run_torch import imported_torch, load_module, tensor_at
from .serve import describe


class Host:
    def __init__(self, config: dict[str, Any]) -> None:
        torch = imported_torch()
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.slots: dict[str, dict[str, Any]] = {}
        self.expected: dict[str, dict[str, Any]] = {}
        self.axes: dict[str, dict[str, int]] = {}
        self.inputs = load_module("problem_inputs", config["inputs"])
        self.reference = load_module("problem_reference", config["reference"])

    def handle(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        match message["do"]:
            case "map":
                return self.map(message, fds)
            case "draw":
                for slot, seed in message["items"]:
                    self.draw(slot, seed, message["dtype"])
            case "refresh":
                changed = [self.refresh(slot, seed, message["dtype"]) for slot, seed in message["items"]]
                return {"ok": True, "changed": changed}
            case "expect":
                began = time.monotonic()
                for slot, into in message["items"]:
                    self.expect(slot, into)
                return {"ok": True, "seconds": time.monotonic() - began}
            case "edge_names":
                return {"ok": True, "names": self.edge_names(message)}
            case "edge":
                self.edge(message)
        return {"ok": True}

    def map(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        areas = zip(fds, message["areas"], strict=True)
        bases = [map_memory(fd, area["size"], True) for fd, area in areas]
        for kind, table in (("slots", self.slots), ("expected", self.expected)):
            for name, tensors in message[kind].items():
                table[name] = {t["name"]: tensor_at(bases[area] + t["offset"], t) for area, t in tensors}
                self.axes[name] = message["axes"]
        return {"ok": True}

    def generator(self, seed: int) -> Any:
        return self.torch.Generator("cpu").manual_seed(seed)

    def draw(self, slot: str, seed: int, dtype: str) -> None:
        made = self.inputs.make_inputs(self.axes[slot], self.generator(seed), "cpu", getattr(self.torch, dtype))
        self.store(slot, made, "inputs.py: make_inputs")

    def refresh(self, slot: str, seed: int, dtype: str) -> list[str] | None:
        """The names of what it says it changed; nothing where it does not say, or draws anew."""
        if hasattr(self.inputs, "refresh"):
            changed = self.inputs.refresh(self.slots[slot], self.axes[slot], self.generator(seed))
            return [str(name) for name in changed] if isinstance(changed, list | tuple) else None
        self.draw(slot, seed, dtype)
        return None

    def edges(self, slot: str, seed: int, dtype: str) -> dict[str, dict[str, Any]]:
        if not hasattr(self.inputs, "edge_inputs"):
            return {}
        edges: dict[str, dict[str, Any]] = self.inputs.edge_inputs(
            self.axes[slot], self.generator(seed), "cpu", getattr(self.torch, dtype)
        )
        return edges

    def edge_names(self, message: dict[str, Any]) -> list[str]:
        self.drawn_edges = self.edges(message["slot"], message["seed"], message["dtype"])
        return list(self.drawn_edges)

    def edge(self, message: dict[str, Any]) -> None:
        self.store(message["slot"], self.drawn_edges.pop(message["name"]), "inputs.py: edge_inputs")

    def store(self, slot: str, made: dict[str, Any], who: str) -> None:
        wanted = self.slots[slot]
        if set(made) != set(wanted):
            raise ValueError(f"{who} gave {sorted(made)}; problem.toml names the inputs {sorted(wanted)}")
        for name, tensor in made.items():
            place = wanted[name]
            if tensor.dtype != place.dtype or tensor.shape != place.shape:
                raise ValueError(
                    f"{who} gave {name} as {tensor.dtype} {list(tensor.shape)}; "
                    f"problem.toml says {place.dtype} {list(place.shape)}"
                )
            place.copy_(tensor)

    def expect(self, slot: str, into: str) -> None:
        made = self.reference.reference(self.slots[slot], self.axes[slot])
        wanted = self.expected[into]
        if set(made) != set(wanted):
            raise ValueError(f"reference.py gave {sorted(made)}; problem.toml names the outputs {sorted(wanted)}")
        for name, tensor in made.items():
            if tensor.shape != wanted[name].shape:
                raise ValueError(
                    f"reference.py gave {name} as {list(tensor.shape)}; problem.toml says {list(wanted[name].shape)}"
                )
            wanted[name].copy_(tensor)


def main(config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    try:
        host = Host(config)
    except BaseException as error:
        link.reply({"id": config["hello"], **describe(error)})
        return
    link.reply({"id": config["hello"], "ok": True})
    while True:
        message, fds = link.receive()
        try:
            answer = host.handle(message, fds)
        except BaseException as error:
            answer = describe(error)
        link.reply({"id": message["id"], **answer})
