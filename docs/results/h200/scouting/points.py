"""What a scout tries: the points of the grids, and files of the candidates with a point's values in them."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from grids import GRIDS

HERE = Path(__file__).resolve().parents[1]
CANDIDATES = HERE.parent / "candidates"
PROBLEMS = HERE.parents[2] / "campaigns" / "problems"
COPY_BYTES_PER_S, BF16_FLOP_PER_S = 4.3e12, 780e12
"""Measured on an H200 (docs/results/harness-h200.md): a large copy, read and written bytes; a large bf16 product."""
NVCC_FLAGS = ["-std=c++20", "-O3", "--shared", "-Xcompiler", "-fPIC", "-gencode=arch=compute_90a,code=sm_90a"]
"""What the harness gives nvcc (campaigns/harness/backends/cuda.py)."""
LARGEST_CHECK_BYTES = 8 << 30


def problem_of(name: str) -> dict[str, Any]:
    return tomllib.loads((PROBLEMS / name / "problem.toml").read_text())


def workloads(problem: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {w["name"]: w for w in problem["workloads"] if w["device"] == "cuda"}


def shape(entries: list[Any], axes: dict[str, int]) -> list[int]:
    return [e if isinstance(e, int) else int(eval(e, {"min": min, "max": max}, dict(axes))) for e in entries]


def floor_us(problem: dict[str, Any], workload: dict[str, Any]) -> float:
    scope = {"min": min, "max": max, "itemsize": 2}
    moved, done = (eval(problem["floor"][k], scope, dict(workload["axes"])) for k in ("bytes", "flop"))
    return float(max(moved / COPY_BYTES_PER_S, done / BF16_FLOP_PER_S) * 1e6)


def module(path: Path, name: str) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def with_values(source: Path, values: dict[str, Any]) -> str:
    text = source.read_text()
    for name, value in values.items():
        text, count = re.subn(
            rf"(?m)^((?:constexpr int )?{name} = )[^\s;]+(;?  (?:#|//) tunable:)", rf"\g<1>{value}\g<2>", text
        )
        if count != 1:
            raise ValueError(f"{source.name} declares no {name}")
    return text


def variant(source: Path, values: dict[str, Any], folder: Path) -> Path:
    """A file of the candidate with these values in its declared parameters; of CUDA C++ the shared object."""
    text = with_values(source, values)
    label = "_".join(f"{k}{v}" for k, v in values.items()) or "as_it_is"
    path = folder / f"{source.parent.name}_{source.stem.replace('-', '_')}_{label}{source.suffix}"
    temporary = path.with_name(f"{os.getpid()}_{path.name}")
    temporary.write_text(text)
    if source.suffix != ".cu":
        temporary.rename(path)
        return path
    built = path.with_suffix(".so")
    if not built.exists():
        found = subprocess.run(
            ["nvcc", *NVCC_FLAGS, "-o", str(temporary.with_suffix(".so")), str(temporary)],
            capture_output=True,
            text=True,
        )
        if found.returncode:
            raise RuntimeError(found.stderr.strip() or f"nvcc ended with {found.returncode}")
        temporary.with_suffix(".so").rename(built)
    return built


def runner(path: Path, axes: dict[str, int]) -> Callable[..., None]:
    """The entry point of a variant, on tensors."""
    if path.suffix == ".py":
        run: Callable[..., None] = module(path, "candidate_kernel").run
        return run
    import torch

    entry = ctypes.CDLL(str(path)).run
    lengths = [ctypes.c_int64(length) for length in axes.values()]

    def call(*tensors: Any) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        entry(*(ctypes.c_void_p(t.data_ptr()) for t in tensors), *lengths, stream)

    return call


Point = tuple[str, str, tuple[tuple[str, Any], ...], str]
"""Problem, file of the candidate, its changed values, workload."""


def points(only: list[str], files: list[str]) -> list[Point]:
    """Every point of the grids and a check of each candidate as it is on every workload that fits; the problems in turn, so
    that each gets a share of a short run, and each problem's checks after half of its points."""
    rows: list[list[Point]] = []
    for problem, candidates in GRIDS.items():
        if only and problem not in only:
            continue
        row: list[Point] = []
        for file, grids in candidates.items():
            if files and file[:2] not in files:
                continue
            for names, grid in grids:
                for values in itertools.product(*grid.values()):
                    row.extend((problem, file, tuple(zip(grid, values, strict=True)), name) for name in names)
        half = len(row) // 2
        rows.append([*row[:half], *checks(problem, files), *row[half:]])
    return [point for group in itertools.zip_longest(*rows) for point in group if point is not None]


def checks(problem: str, files: list[str]) -> Iterator[Point]:
    for file in GRIDS[problem]:
        if files and file[:2] not in files:
            continue
        for name, workload in workloads(problem_of(problem)).items():
            if size_bytes(problem, workload) <= LARGEST_CHECK_BYTES:
                yield problem, file, (), name


def size_bytes(problem: str, workload: dict[str, Any]) -> int:
    found = 0
    spec = problem_of(problem)
    for tensor in (*spec["inputs"], *spec["outputs"]):
        count = 1
        for length in shape(tensor["shape"], workload["axes"]):
            count *= length
        found += count * (2 if tensor["dtype"] == "dtype" else 8 if tensor["dtype"] == "int64" else 4)
    return found


def told(point: Point) -> dict[str, Any]:
    problem, file, values, name = point
    return {
        "problem": problem,
        "file": file,
        "values": dict(values),
        "workload": name,
        "kernels": [],
        "check": not values,
    }
