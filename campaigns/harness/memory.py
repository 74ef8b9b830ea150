"""Tensors in shared memory: made by the evaluator, seen as NumPy arrays here and as raw addresses in a sandbox.

Inputs are sealed against new writable mappings (F_SEAL_FUTURE_WRITE) before a candidate gets them: the memory
management unit, not a later comparison, keeps them unchanged.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import Infrastructure
from .problem import ITEMSIZE_BYTES, Problem, TensorSpec, Workload

ALIGNMENT_BYTES = 64
GUARD_BYTES = 4096
F_SEAL_FUTURE_WRITE = 0x0010
STORAGE = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""NumPy has no such types: their bits are kept as whole numbers."""


@dataclass(frozen=True)
class Place:
    """Where a tensor lies in its area."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * ITEMSIZE_BYTES[self.dtype]

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "offset": self.offset, "shape": list(self.shape), "dtype": self.dtype}


class Area:
    """One piece of shared memory, zero at first."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            self.fd = os.memfd_create("tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.fd, self.nbytes)
            self.map = mmap.mmap(self.fd, self.nbytes)
        except OSError as error:
            raise Infrastructure(f"no shared memory of {self.nbytes} bytes: {error}") from error
        self.bytes: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)

    def seal(self) -> None:
        """From now on nobody can map it writable; what is mapped already stays so."""
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)

    def view(self, place: Place) -> NDArray[Any]:
        """The tensor's values; for types that NumPy lacks, their bits."""
        flat = self.bytes[place.offset : place.offset + place.nbytes]
        return flat.view(STORAGE.get(place.dtype, place.dtype)).reshape(place.shape)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back; what is mapped stays mapped."""
        if getattr(self, "fd", -1) >= 0:
            os.close(self.fd)
            self.fd = -1


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def layout(
    problem: Problem, specs: Sequence[TensorSpec], workload: Workload, dtype: str | None = None, guard: int = 0
) -> tuple[list[Place], int]:
    """Places of the tensors, one after the other with ``guard`` bytes around each, and the bytes of it all."""
    places, offset = [], guard
    for spec in specs:
        place = Place(spec.name, offset, problem.shape(spec, workload), dtype or problem.tensor_dtype(spec, workload))
        places.append(place)
        offset = _aligned(offset + place.nbytes + guard)
    return places, offset


def as_float64(values: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """The values of a tensor as float64, also of types that NumPy lacks."""
    if dtype == "bfloat16":
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.startswith("float8"):
        return _float8_table(dtype)[values]
    return values.astype(np.float64)


def _float8_table(dtype: str) -> NDArray[np.float64]:
    """All 256 values. e4m3fn has no infinities, and NaN only where all bits but the sign are set."""
    bits = np.arange(256)
    width, bias = (3, 7) if dtype == "float8_e4m3fn" else (2, 15)
    exponent, fraction = (bits >> width) & (0x7F >> width), bits & ((1 << width) - 1)
    scale = np.exp2(np.maximum(exponent, 1) - float(bias))
    table = (fraction / (1 << width) + (exponent > 0)) * scale
    if dtype == "float8_e5m2":
        table[exponent == 31] = np.where(fraction[exponent == 31] == 0, np.inf, np.nan)
    else:
        table[(bits & 0x7F) == 0x7F] = np.nan
    return np.where(bits & 0x80, -table, table)


def poison_pool(place: Place, scale: float, random: np.random.Generator) -> NDArray[Any]:
    """Ordinary-looking wrong values for an output, a little longer than it, so that each use starts elsewhere."""
    count = prod(place.shape) + 1024
    storage = np.dtype(STORAGE.get(place.dtype, place.dtype))
    if place.dtype.startswith("float8"):
        return random.integers(0, 0x70, count).astype(np.uint8)
    if storage.kind == "f" or place.dtype == "bfloat16":
        values = random.standard_normal(count, dtype=np.float32) * np.float32(scale)
        return (values.view(np.uint32) >> 16).astype(np.uint16) if place.dtype == "bfloat16" else values.astype(storage)
    if storage.kind == "b":
        return random.integers(0, 2, count).astype(storage)
    return random.integers(0, 100, count).astype(storage)
