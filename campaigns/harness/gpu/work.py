"""What is told of a workload, and which parts of its outputs are looked at. Pure."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from ..memory import ALIGNMENT_BYTES
from ..problem import ITEMSIZE_BYTES, Problem, TensorSpec, Workload

WHOLE_VALUES = 1 << 25
"""Up to so many output values are all compared, where that is asked for."""
SMALL_VALUES = 1 << 20
PIECES = 8
PIECE_VALUES = 1 << 17


@dataclass(frozen=True)
class Draw:
    """What the inputs of a slot are: a draw by seed, or one of its edge cases."""

    seed: int
    edge: str | None = None


@dataclass(frozen=True)
class Piece:
    """A run of an output's values, and where it lies in the two shared memories."""

    name: str
    first: int
    count: int
    out_byte: int
    expected_byte: int


def describe(problem: Problem, workload: Workload) -> dict[str, Any]:
    """A workload as a process inside reads it. ``order``: the axes as an entry point takes them."""
    return {
        "name": workload.name,
        "axes": workload.axes,
        "order": [workload.axes[name] for name in problem.axes],
        "dtype": workload.dtype,
        "inputs": [_tensor(problem, spec, workload) for spec in problem.inputs],
        "outputs": [
            {**_tensor(problem, spec, workload), "expected": expected_dtype(problem.tensor_dtype(spec, workload))}
            for spec in problem.outputs
        ],
    }


def _tensor(problem: Problem, spec: TensorSpec, workload: Workload) -> dict[str, Any]:
    shape = list(problem.shape(spec, workload))
    return {"name": spec.name, "shape": shape, "dtype": problem.tensor_dtype(spec, workload)}


def expected_dtype(dtype: str) -> str:
    """As what a float64 expectation travels: float32 where the output itself holds a thousandth of its digits."""
    return "float32" if dtype in ("bfloat16", "float16") or dtype.startswith("float8") else "float64"


def nbytes(problem: Problem, specs: list[TensorSpec], workload: Workload) -> int:
    return sum(
        math.prod(problem.shape(spec, workload)) * ITEMSIZE_BYTES[problem.tensor_dtype(spec, workload)]
        for spec in specs
    )


def total_bytes(problem: Problem, workload: Workload) -> int:
    """Inputs and outputs of one call."""
    return nbytes(problem, problem.inputs + problem.outputs, workload)


def pieces(problem: Problem, workload: Workload, whole: bool, rng: random.Random) -> list[Piece]:
    """Where to look: everywhere when that is little or asked for; else both ends and places that nobody knows before."""
    counts = {spec.name: math.prod(problem.shape(spec, workload)) for spec in problem.outputs}
    total = sum(counts.values())
    everywhere = total <= SMALL_VALUES or (whole and total <= WHOLE_VALUES)
    found: list[Piece] = []
    out_byte = expected_byte = 0
    for spec in problem.outputs:
        dtype = problem.tensor_dtype(spec, workload)
        count = counts[spec.name]
        for first, size in [(0, count)] if everywhere else _places(count, rng):
            found.append(Piece(spec.name, first, size, out_byte, expected_byte))
            out_byte = _up(out_byte + size * ITEMSIZE_BYTES[dtype])
            expected_byte = _up(expected_byte + size * ITEMSIZE_BYTES[expected_dtype(dtype)])
    return found


def _places(count: int, rng: random.Random) -> list[tuple[int, int]]:
    if count <= PIECES * PIECE_VALUES:
        return [(0, count)]
    last = count - PIECE_VALUES
    middle = sorted(rng.randrange(0, last) for _ in range(PIECES - 2))
    return [(first, PIECE_VALUES) for first in (0, *middle, last)]


def _up(offset: int) -> int:
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def sizes(problem: Problem, workload: Workload, found: list[Piece]) -> tuple[int, int]:
    """Bytes that the pieces take in the two shared memories."""
    dtypes = {spec.name: problem.tensor_dtype(spec, workload) for spec in problem.outputs}
    out = max(p.out_byte + p.count * ITEMSIZE_BYTES[dtypes[p.name]] for p in found)
    expected = max(p.expected_byte + p.count * ITEMSIZE_BYTES[expected_dtype(dtypes[p.name])] for p in found)
    return out, expected
