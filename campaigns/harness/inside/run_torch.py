"""Runs a Python file with ``run(inputs…, outputs…)`` on CPU tensors, one thread. Baselines run here too."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from .interpreter import mend
from .serve import TENSOR, serve

MODULE_NAME = "candidate_kernel"


class Torch:
    def __init__(self) -> None:
        torch = imported_torch()
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        if progress_bars := sys.modules.get("tqdm"):  # torch.compile makes one, hidden, and with it a thread
            progress_bars.tqdm.monitor_interval = 0

    def load(self, config: dict[str, Any]) -> None:
        if os.environ.get("TRITON_INTERPRET") == "1":
            mend()
        sys.path.append(config["folder"])  # last: a candidate's torch.py is never taken for torch
        self.module = load_module(MODULE_NAME, config["path"])
        if not callable(getattr(self.module, "run", None)):
            raise RuntimeError("the file defines no function run(inputs…, outputs…)")

    def arguments(self, tensors: list[tuple[int, TENSOR]], axes: list[int]) -> tuple[Any, ...]:
        return tuple(tensor_at(address, description) for address, description in tensors)

    def function(self) -> Callable[..., Any]:
        run: Callable[..., Any] = self.module.run
        return run


def imported_torch() -> Any:
    """Its import makes objects by the hundred thousand, and all of them stay: looking for garbage meanwhile costs a tenth of it."""
    gc.disable()
    try:
        import torch
    finally:
        gc.freeze()
        gc.enable()
    return torch


def load_module(name: str, path: str) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tensor_at(address: int, description: TENSOR) -> Any:
    """A tensor over memory that is already there. Nothing is copied."""
    import torch

    dtype = getattr(torch, description["dtype"])
    size = math.prod(description["shape"]) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return torch.frombuffer(memory, dtype=dtype).reshape(description["shape"])


def main(config: dict[str, Any]) -> None:
    serve(Torch(), config)
