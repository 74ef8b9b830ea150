"""A torch extension as the entry of a candidate: its function writes the outputs, or returns them and they are copied."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

NAME = "kernel_ext"
ENTRIES = ("run", "forward")


def load(path: str) -> Callable[..., Any]:
    """The extension's ``run`` or ``forward``, or its only function."""
    spec = spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    names = [name for name in dir(module) if not name.startswith("_") and callable(getattr(module, name))]
    name = next((name for name in ENTRIES if name in names), names[0] if len(names) == 1 else "")
    if not name:
        raise RuntimeError(
            f"the extension must define a function run, or one function; it defines {', '.join(names) or 'none'}"
        )
    function: Callable[..., Any] = getattr(module, name)
    return function


class Caller:
    """Calls it in the way that it takes: (inputs…, outputs…) or (inputs…), with the axes behind where it wants them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.way: tuple[bool, bool] | None = None

    def __call__(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...], axes: list[int]) -> None:
        if self.way is None:
            self.way = self.find(inputs, outputs, axes)
            return
        self.call(self.way, inputs, outputs, axes)

    def find(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...], axes: list[int]) -> tuple[bool, bool]:
        """The first way whose arguments the function's binding accepts; called so."""
        refused: TypeError | None = None
        for way in ((True, False), (False, False), (True, True), (False, True)):
            try:
                self.call(way, inputs, outputs, axes)
                return way
            except TypeError as error:
                if "incompatible function arguments" not in str(error):
                    raise
                refused = refused or error
        assert refused is not None
        raise refused

    def call(self, way: tuple[bool, bool], inputs: tuple[Any, ...], outputs: tuple[Any, ...], axes: list[int]) -> None:
        in_place, with_axes = way
        made = self.function(*inputs, *(outputs if in_place else ()), *(axes if with_axes else ()))
        if in_place:
            return
        made = tuple(made) if isinstance(made, tuple | list) else (made,)
        if len(made) != len(outputs):
            raise RuntimeError(f"it returned {len(made)} tensors, and the operator has {len(outputs)} outputs")
        for output, tensor in zip(outputs, made, strict=True):
            if tensor.shape != output.shape or tensor.dtype != output.dtype:
                raise RuntimeError(
                    f"it returned {tensor.dtype} {list(tensor.shape)} for {output.dtype} {list(output.shape)}"
                )
            output.copy_(tensor)
