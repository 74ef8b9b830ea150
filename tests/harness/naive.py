"""A plain harness, as many are: one process, one fixed draw, one buffer, a warm-up, 20 timed calls, ``allclose``.

It shows what a cheat is worth elsewhere. Run it as ``python naive.py PROBLEM_DIR CANDIDATE …``; it prints the paths of
those that passed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROWS, COLUMNS = 32, 1024


def module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def candidate(path: Path) -> Callable[..., Any]:
    if path.is_dir():
        sys.path.append(str(path))
        path /= "kernel.py"
    if path.suffix == ".py":
        run: Callable[..., Any] = module(path).run
        return run
    command = ["g++", "-std=c++20", "-O3", "-fPIC", "-shared", "-pthread", "-o", "/tmp/naive.so", str(path)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL("/tmp/naive.so").run

    def call(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, w, y)]
        function(*pointers, ctypes.c_int64(ROWS), ctypes.c_int64(COLUMNS))

    return call


def main() -> None:
    """A process for each candidate, forked from one that has imported torch already."""
    torch.set_num_threads(1)
    for path in sys.argv[2:]:
        if (pid := os.fork()) == 0:
            os._exit(0 if passes(Path(sys.argv[1]), Path(path)) else 1)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            print(path, flush=True)


def passes(problem: Path, path: Path) -> bool:
    axes = {"rows": ROWS, "columns": COLUMNS}
    inputs = module(problem / "inputs.py").make_inputs(axes, torch.Generator().manual_seed(0), "cpu", torch.float32)
    y = torch.empty(ROWS, COLUMNS)
    module(problem / "baselines" / "eager.py").run(**inputs, y=y)
    run = candidate(path)
    run(inputs["x"], inputs["w"], y)
    began = time.perf_counter()
    for _ in range(20):
        run(inputs["x"], inputs["w"], y)
    print(f"{path.name}: {(time.perf_counter() - began) / 20 * 1e6:.1f} µs a call", file=sys.stderr)
    expected = module(problem / "reference.py").reference(inputs, axes)["y"].float()
    return torch.allclose(y, expected, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    main()
