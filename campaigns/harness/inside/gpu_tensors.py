"""Tensors by their description, draws by seed, pieces out and in: what runner and reference process share."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from .run_torch import tensor_at

SPEC = dict[str, Any]
"""``{"name": "x", "shape": […], "dtype": "float32"}``"""
DIGEST_PIECE = 1 << 25


class Areas:
    """Shared memory of the evaluator, by number."""

    def __init__(self) -> None:
        self.bases: dict[int, int] = {}

    def map(self, message: dict[str, Any], fds: list[int]) -> None:
        from .link import map_memory

        for number, size, fd in zip(message["numbers"], message["sizes"], fds, strict=True):
            self.bases[number] = map_memory(fd, size, message["writable"])

    def unmap(self, number: int, size: int) -> None:
        libc = ctypes.CDLL(None)
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.munmap(self.bases.pop(number), size)

    def tensor(self, number: int, offset: int, count: int, dtype: str) -> Any:
        return tensor_at(self.bases[number] + offset, {"shape": [count], "dtype": dtype})


def dtype_of(torch: Any, spec: SPEC) -> Any:
    return getattr(torch, spec["dtype"])


def draw(device: Any, inputs: Any, workload: dict[str, Any], seed: int, edge: str | None) -> dict[str, Any]:
    """One fresh draw of the problem's inputs, on the device; an edge case by its name."""
    torch = device.torch
    generator = torch.Generator(device.name).manual_seed(seed)
    dtype = getattr(torch, workload["dtype"])
    if edge is None:
        made = inputs.make_inputs(workload["axes"], generator, device.name, dtype)
    else:
        made = inputs.edge_inputs(workload["axes"], generator, device.name, dtype)[edge]
    check(torch, made, workload["inputs"], "inputs.py")
    return dict(made)


def check(torch: Any, made: dict[str, Any], specs: list[SPEC], who: str, dtypes: bool = True) -> None:
    wanted = {s["name"]: s for s in specs}
    if set(made) != set(wanted):
        raise ValueError(f"{who} gave {sorted(made)}; problem.toml names {sorted(wanted)}")
    for name, tensor in made.items():
        spec = wanted[name]
        if list(tensor.shape) != spec["shape"] or (dtypes and tensor.dtype != dtype_of(torch, spec)):
            raise ValueError(
                f"{who} gave {name} as {tensor.dtype} {list(tensor.shape)}; problem.toml says {spec['dtype']} {spec['shape']}"
            )


def store(areas: Areas, area: int, tensors: dict[str, Any], pieces: list[list[Any]]) -> None:
    """Copy pieces ``[name, first value, values, byte in the area]`` into shared memory."""
    for name, first, count, offset in pieces:
        flat = tensors[name].reshape(-1)[first : first + count]
        areas.tensor(area, offset, count, str(flat.dtype).removeprefix("torch.")).copy_(flat)


def digest(torch: Any, tensors: dict[str, Any]) -> dict[str, int]:
    """A number for the bits of each tensor, the same on every device: a sum of words, each times its place."""
    found = {}
    for name, tensor in tensors.items():
        words = tensor.reshape(-1).view(torch.uint8)
        total = 0
        for piece in words.split(DIGEST_PIECE):
            wide = piece.to(torch.int64)
            place = torch.arange(1, len(piece) + 1, device=piece.device, dtype=torch.int64)
            total = (total * 31 + int((wide * place).sum())) & 0xFFFFFFFFFFFF
        found[name] = total
    return found


def values(shape: list[int]) -> int:
    return math.prod(shape)
