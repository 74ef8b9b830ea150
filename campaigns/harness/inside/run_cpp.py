"""Runs a shared object with ``extern "C" void run(inputs…, outputs…, axes…)``. Imports neither torch nor NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .serve import TENSOR, serve


class Cpp:
    def load(self, config: dict[str, Any]) -> None:
        try:
            self.run = ctypes.CDLL(config["path"]).run
        except AttributeError:
            raise RuntimeError('the built library exports no function "run": it must be declared extern "C"') from None
        self.run.restype = None

    def arguments(self, tensors: list[tuple[int, TENSOR]], axes: list[int]) -> tuple[Any, ...]:
        return (*(ctypes.c_void_p(address) for address, _ in tensors), *(ctypes.c_int64(axis) for axis in axes))

    def function(self) -> Callable[..., Any]:
        return self.run


def main(config: dict[str, Any]) -> None:
    serve(Cpp(), config)
