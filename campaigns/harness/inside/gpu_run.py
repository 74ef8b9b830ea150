"""Runs one candidate on the GPU: draws its inputs by seed, calls it, captures and replays its calls.

From ``__init__`` on this process is the candidate's. What it says of itself decides nothing: the evaluator's clock, the
reference's outputs and another process's comparison do.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

from . import gpu_extension, gpu_profile
from .gpu_tensors import Areas, digest, draw, dtype_of, store, values
from .link import Link
from .run_torch import load_module
from .trace import trace

GUARD_BYTES = 4096
GUARD = 0xA5
ALIGNMENT_BYTES = 256
POISON_EXTRA = 1024


class Slot:
    """One draw's memory: inputs, outputs with guard bytes around them, and the arguments of a call."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.guards: list[Any] = []
        self.arguments: tuple[Any, ...] = ()


class Role:
    def __init__(self, device: Any, message: dict[str, Any]) -> None:
        self.device, self.torch = device, device.torch
        self.inputs = load_module("problem_inputs", "/tmp/problem/inputs.py")
        self.areas = Areas()
        self.workloads: dict[str, dict[str, Any]] = {}
        self.slots: dict[str, Slot] = {}
        self.pools: dict[str, dict[str, Any]] = {}
        self.graphs: dict[str, Any] = {}
        self.owners: dict[str, str] = {}
        self.digest, self.store = digest, store
        self.call = self.load(message)

    def load(self, message: dict[str, Any]) -> Callable[[Slot, list[int]], None]:
        path = f"/tmp/candidate/{message['entry']}"
        if message["backend"] == "cuda":
            return self.load_cuda(path)
        sys.path.append("/tmp/candidate")  # last: a candidate's torch.py is never taken for torch
        module = load_module("candidate_kernel", path)
        if not callable(getattr(module, "run", None)):
            raise RuntimeError("the file defines no function run(inputs…, outputs…)")
        return lambda slot, axes: module.run(*slot.arguments)

    def load_cuda(self, path: str) -> Callable[[Slot, list[int]], None]:
        if path.endswith(f"{gpu_extension.NAME}.so"):
            return self.load_extension(path)
        library = ctypes.CDLL(path)
        try:
            run = library.run
        except AttributeError:
            raise RuntimeError('the built library exports no function "run": it must be declared extern "C"') from None
        run.restype = None
        last_error = library.autoresearch_last_error
        last_error.restype = ctypes.c_char_p

        def call(slot: Slot, axes: list[int]) -> None:
            pointers = [ctypes.c_void_p(t.data_ptr()) for t in slot.arguments]
            run(*pointers, *map(ctypes.c_int64, axes), ctypes.c_void_p(self.device.stream_pointer()))
            if error := last_error():
                raise RuntimeError(f"CUDA error after the launch: {error.decode(errors='replace')}")

        return call

    def load_extension(self, path: str) -> Callable[[Slot, list[int]], None]:
        caller = gpu_extension.Caller(gpu_extension.load(path))
        last_error = ctypes.CDLL(path).autoresearch_last_error
        last_error.restype = ctypes.c_char_p

        def call(slot: Slot, axes: list[int]) -> None:
            count = len(slot.inputs)
            caller(slot.arguments[:count], slot.arguments[count:], axes)
            if error := last_error():
                raise RuntimeError(f"CUDA error after the launch: {error.decode(errors='replace')}")

        return call

    def handle(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any] | None:
        match message["do"]:
            case "areas":
                self.areas.map(message, fds)
            case "slots":
                self.make_slots(message)
            case "drop":
                self.drop(message)
            case "renew":
                self.renew(message)
            case "call":
                return self.call_slots(message)
            case "capture":
                return self.capture(message)
            case "store":
                return self.store_slot(message)
            case "digest":
                self.device.sync()
                return {"digest": self.digest(self.torch, getattr(self.slots[message["slot"]], message["of"]))}
            case "trace":
                return self.trace(message, fds[0])
            case "profile":
                return gpu_profile.profile(self, message["calls"])
        return None

    def make_slots(self, message: dict[str, Any]) -> None:
        """Memory for new slots, each tensor at a place of its own: random gaps, drawn by the evaluator's seed."""
        workload = message["workload"]
        self.workloads[workload["name"]] = workload
        generator = self.torch.Generator().manual_seed(message["placement"])
        for name in message["names"]:
            slot = self.slots[name] = Slot()
            self.owners[name] = workload["name"]
            for spec in workload["inputs"]:
                slot.inputs[spec["name"]] = self.tensor(spec, generator, None)
            for spec in workload["outputs"]:
                slot.outputs[spec["name"]] = self.tensor(spec, generator, slot)
            # Tensors of its own over the same memory: what it makes of these objects (another class, other memory)
            # does not change what is filled, hashed and looked at.
            slot.arguments = tuple(t.detach() for t in (*slot.inputs.values(), *slot.outputs.values()))

    def tensor(self, spec: dict[str, Any], generator: Any, guarded: Slot | None) -> Any:
        torch = self.torch
        dtype = dtype_of(torch, spec)
        size = values(spec["shape"]) * dtype.itemsize
        gap = int(torch.randint(0, 64, (1,), generator=generator)) * ALIGNMENT_BYTES
        first = gap + GUARD_BYTES
        memory = torch.empty(first + size + GUARD_BYTES, dtype=torch.uint8, device=self.device.name)
        if guarded is not None:
            guards = [memory[gap:first], memory[first + size :]]
            for guard in guards:
                guard.fill_(GUARD)
            guarded.guards += guards
        return memory[first : first + size].view(dtype).reshape(spec["shape"])

    def drop(self, message: dict[str, Any]) -> None:
        for name in message["names"]:
            self.slots.pop(name, None)
        for name in message["graphs"]:
            self.graphs.pop(name, None)
        self.device.release()

    def renew(self, message: dict[str, Any]) -> None:
        """New values: each input of the slots ``[slot, seed, edge]``, then poison into the outputs of ``poison``."""
        for name, seed, edge in message["items"]:
            slot = self.slots[name]
            made = draw(self.device, self.inputs, self.workloads[self.owners[name]], seed, edge)
            for key, tensor in made.items():
                slot.inputs[key].copy_(tensor)
        for index, name in enumerate(message["poison"]):
            self.poison(self.slots[name], self.pool(name, message), index)
        self.device.sync()

    def pool(self, slot: str, message: dict[str, Any]) -> dict[str, Any]:
        """Wrong but ordinary values for the outputs of a slot's workload."""
        owner = self.owners[slot]
        if owner not in self.pools:
            generator = self.torch.Generator(self.device.name).manual_seed(message["seed"])
            specs = self.workloads[owner]["outputs"]
            self.pools[owner] = {s["name"]: self.wrong(s, message["scales"], generator) for s in specs}
        return self.pools[owner]

    def wrong(self, spec: dict[str, Any], scales: dict[str, float], generator: Any) -> Any:
        torch, dtype = self.torch, dtype_of(self.torch, spec)
        options = {"generator": generator, "device": self.device.name}
        count = values(spec["shape"]) + POISON_EXTRA
        if spec["dtype"].startswith("float8"):
            return torch.randint(0, 0x70, (count,), dtype=torch.uint8, **options).view(dtype)
        if dtype.is_floating_point:
            return torch.randn(count, **options).mul_(scales.get(spec["name"], 1.0)).to(dtype)
        return torch.randint(0, 2 if dtype == torch.bool else 100, (count,), **options).to(dtype)

    def poison(self, slot: Slot, pool: dict[str, Any], index: int) -> None:
        for name, out in slot.outputs.items():
            first = (index * 37 + 11) % POISON_EXTRA
            out.view(-1).copy_(pool[name][first : first + out.numel()])

    def axes(self, slot: str) -> list[int]:
        return list(self.workloads[self.owners[slot]]["order"])

    def call_slots(self, message: dict[str, Any]) -> dict[str, Any]:
        """Plain calls, one for each slot; all is over when it answers."""
        calls = [(self.slots[name], self.axes(name)) for name in message["calls"]]
        run = self.call
        device_ns = self.device.timed(lambda: [run(slot, axes) for slot, axes in calls] and None)
        return {"device_ns": device_ns}

    def capture(self, message: dict[str, Any]) -> dict[str, Any]:
        """One graph of several calls. ``direct`` keeps them as plain calls."""
        calls = [(self.slots[name], self.axes(name)) for name in message["calls"]]
        run = self.call

        def work() -> None:
            for slot, axes in calls:
                run(slot, axes)

        if message.get("direct"):
            from .gpu_device import Graph

            self.graphs[message["graph"]] = Graph(work, None)
            return {"nodes": None}
        graph = self.device.capture(work)
        self.graphs[message["graph"]] = graph
        return {"nodes": graph.nodes}

    def block(self, message: dict[str, Any], link: Link) -> dict[str, Any]:
        """Replay once, between the evaluator's "go" and our answer. ``prime`` runs before, outside the clock."""
        graphs = [self.graphs[name] for name in message["graphs"]]
        for name in message["prime"]:
            self.graphs[name].replay()
        gc.disable()
        self.device.flush()

        def work() -> None:
            for graph in graphs:
                graph.replay()

        link.reply({"id": message["id"], "ok": True, "ready": True})
        word = link.wait_for_go()
        device_ns = self.device.timed(work)
        return {"ok": True, "word": word, "device_ns": device_ns}

    def trace(self, message: dict[str, Any], fd: int) -> dict[str, Any]:
        run = self.call
        calls = [functools.partial(run, self.slots[name], self.axes(name)) for name in message["calls"]]
        return {"bytes": trace(calls, message["warm"], self.device.sync, fd, message["most_bytes"])}

    def store_slot(self, message: dict[str, Any]) -> dict[str, Any]:
        slot = self.slots[message["slot"]]
        self.store(self.areas, message["area"], slot.outputs, message["pieces"])
        return {"guards": all(bool((guard == GUARD).all()) for guard in slot.guards)}
