"""Runs a bundled problem's own files in this process: these are ours, so no sandbox is needed here."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

from campaigns.harness.accuracy import compare
from campaigns.harness.problem import Problem, Workload, load_problem, read_folder

FOLDER = Path(__file__).parents[2] / "campaigns" / "problems"
NAMES = sorted(p.parent.name for p in FOLDER.glob("*/problem.toml"))
MOST_VALUES = 3_000_000
"""Workloads with larger inputs are left to the harness's own tests."""
BUILD = ["g++", "-std=c++20", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fPIC", "-shared"]


@cache
def problem(name: str) -> Problem:
    return load_problem(read_folder(FOLDER / name))


def small_workloads(name: str) -> list[Workload]:
    loaded = problem(name)
    sizes = {w.name: max(torch.Size(loaded.shape(s, w)).numel() for s in loaded.inputs) for w in loaded.workloads}
    return [w for w in loaded.workloads_on("cpu") if sizes[w.name] <= MOST_VALUES]


@cache
def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_".join(path.parts[-3:]).removesuffix(".py"), path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def inputs_of(name: str) -> ModuleType:
    return module(FOLDER / name / "inputs.py")


def draw(name: str, workload: Workload, seed: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return inputs_of(name).make_inputs(workload.axes, generator, "cpu", getattr(torch, workload.dtype))


def edges(name: str, workload: Workload) -> dict[str, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return inputs_of(name).edge_inputs(workload.axes, generator, "cpu", getattr(torch, workload.dtype))


def reference(name: str, workload: Workload, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return module(FOLDER / name / "reference.py").reference(inputs, workload.axes)


def fresh_outputs(name: str, workload: Workload) -> list[torch.Tensor]:
    loaded = problem(name)
    return [
        torch.full(loaded.shape(s, workload), 7, dtype=getattr(torch, loaded.tensor_dtype(s, workload)))
        for s in loaded.outputs
    ]


def misfit(name: str, workload: Workload, got: list[torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """The error over the tolerance, the worst of all outputs: above 1 is incorrect."""
    loaded, worst = problem(name), 0.0
    for spec, out in zip(loaded.outputs, got, strict=True):
        t = loaded.tolerance_for(spec, workload)
        error = compare(out.double().numpy(), expected[spec.name].double().numpy(), t).error
        worst = max(worst, error / t if t else (float("inf") if error else 0.0))
    return worst


def compiled(source: Path, folder: Path, workload: Workload) -> Callable[..., None]:
    """``run`` of a C++ kernel, called with tensors."""
    library = folder / f"{source.parts[-3]}-{source.stem}.so"
    if not library.exists():
        subprocess.run([*BUILD, str(source), "-o", str(library)], check=True)
    run = ctypes.CDLL(str(library)).run
    run.restype = None
    sizes = [ctypes.c_int64(v) for v in workload.axes.values()]
    return lambda *tensors: run(*[ctypes.c_void_p(t.data_ptr()) for t in tensors], *sizes)
