"""Which kernel serves a call: the fastest that was approved for its shapes, dtype and hardware, or none."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .load import CannotLoad, Run, load, python_function
from .ranges import gain_near, outside

ALIGNMENT_BYTES = 64
Shapes = Callable[..., dict[str, tuple[int, ...]]]


class Operator:
    """One operator with its kernels and its fallback. Called with the input tensors; gives a new output, or a tuple.

    ``out=`` takes the output tensors instead. Axes that no input's shape tells are given by name.
    """

    def __init__(
        self, spec: dict[str, Any], shapes: Shapes, folder: Path, fallback: Callable[..., Any] | None = None
    ) -> None:
        self.name: str = spec["name"]
        self.axes: list[str] = spec["axes"]
        self.inputs: list[dict[str, Any]] = spec["inputs"]
        self.outputs: list[dict[str, Any]] = spec["outputs"]
        self.kernels: list[dict[str, Any]] = spec["kernels"]
        self.shapes = shapes
        self.folder = folder
        self._fallback = fallback
        self._default: dict[str, str] = spec["fallback"]
        self._loaded: dict[str, Run | None] = {}
        self._chosen: dict[Any, tuple[dict[str, Any] | None, tuple[int, ...], dict[str, Any], str]] = {}
        self._lock = threading.RLock()

    def __call__(self, *inputs: torch.Tensor, out: Any = None, **axes: int) -> Any:
        outputs = None if out is None else (out if isinstance(out, tuple | list) else (out,))
        made = self.run(inputs, outputs, axes)
        if made is None:
            made = self._fall_back(inputs, outputs, axes)
        return made[0] if len(made) == 1 else tuple(made)

    def run(
        self, inputs: Sequence[Any], outputs: Sequence[Any] | None = None, axes: Mapping[str, int] | None = None
    ) -> Any:
        """The outputs by a kernel, or None where none serves this call: nothing was computed then."""
        kernel, values, shapes, _ = self.choose(inputs, axes or {})
        run = self._ready(kernel) if kernel else None
        if run is None or _why_not_as_they_are(inputs, outputs):
            return None
        if outputs is None:
            outputs = self._empty(inputs, shapes)
        elif not self._fit(inputs, outputs, shapes):
            return None
        run(inputs, outputs, values)
        return outputs

    def explain(self, *inputs: torch.Tensor, **axes: int) -> str:
        """Which kernel would serve this call, or why none does."""
        kernel, _, _, why = self.choose(inputs, axes)
        if kernel and self._ready(kernel) is None:
            return f"fallback: kernel {kernel['id']} cannot be loaded here"
        if kernel and (other := _why_not_as_they_are(inputs, None)):
            return f"fallback: {other}"
        return f"kernel {kernel['id']}: {why}" if kernel else f"fallback: {why}"

    def set_fallback(self, function: Callable[..., Any]) -> None:
        """What serves every other call: a function of the inputs that returns the output."""
        self._fallback = function

    def choose(
        self, inputs: Sequence[Any], axes: Mapping[str, int]
    ) -> tuple[dict[str, Any] | None, tuple[int, ...], dict[str, Any], str]:
        """(kernel, axes in order, shapes, why). Remembered by shapes, dtypes and device."""
        if len(inputs) != len(self.inputs) or not all(isinstance(t, torch.Tensor) for t in inputs):
            return None, (), {}, f"{self.name} takes {len(self.inputs)} tensors"
        key = (tuple((t.shape, t.dtype, t.device) for t in inputs), tuple(sorted(axes.items())))
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = self._choose(inputs, axes)
            if len(self._chosen) > 10_000:
                self._chosen.clear()
        return found

    def _choose(self, inputs: Sequence[Any], given: Mapping[str, int]) -> Any:
        dtype = self._dtype(inputs)
        if dtype is None:
            return None, (), {}, "the dtypes are not those of the operator"
        axes = self._solve(inputs, given)
        if isinstance(axes, str):
            return None, (), {}, axes
        device = inputs[0].device
        if any(t.device != device for t in inputs):
            return None, (), {}, "the inputs lie on different devices"
        shapes = {"dtype": dtype, **self.shapes(**axes)}
        best, best_gain, why = None, 1.0, "no kernel was approved for this hardware and dtype"
        for kernel in self.kernels:
            if kernel["device"] != device.type or not _is_hardware(kernel, device) or dtype not in kernel["tested"]:
                continue
            if beyond := outside(kernel, dtype, axes):
                why = beyond if best is None else why
                continue
            gain, at = gain_near(kernel, dtype, axes)
            if gain > best_gain:
                best, best_gain, why = kernel, gain, f"{gain:.2f}x over {kernel['baseline']} at {at}"
            elif best is None:
                why = f"kernel {kernel['id']} is not faster near here ({gain:.2f}x at {at})"
        return best, tuple(axes[name] for name in self.axes), shapes, why

    def _dtype(self, inputs: Sequence[Any]) -> str | None:
        """What the operator's own dtype is in this call. A spec of "dtype" means that one; others are fixed."""
        names = [str(t.dtype).removeprefix("torch.") for t in inputs]
        variable = {n for n, spec in zip(names, self.inputs, strict=True) if spec["dtype"] == "dtype"}
        fixed = all(spec["dtype"] in ("dtype", n) for n, spec in zip(names, self.inputs, strict=True))
        return variable.pop() if len(variable) == 1 and fixed else None

    def _solve(self, inputs: Sequence[Any], given: Mapping[str, int]) -> dict[str, int] | str:
        """The axes behind the shapes, or what does not fit."""
        axes = dict(given)
        for tensor, spec in zip(inputs, self.inputs, strict=True):
            if tensor.dim() != len(spec["shape"]):
                return f"{spec['name']} has {tensor.dim()} dimensions instead of {len(spec['shape'])}"
            for size, entry in zip(tensor.shape, spec["shape"], strict=True):
                if entry in self.axes and axes.setdefault(entry, int(size)) != size:
                    return f"{spec['name']}: {entry} is {size} here and {axes[entry]} elsewhere"
        if missing := [name for name in self.axes if name not in axes]:
            return f"the axes {', '.join(missing)} must be given by name"
        if min(axes.values(), default=1) < 1:
            return "an axis is 0"
        wanted = self.shapes(**{name: axes[name] for name in self.axes})
        for tensor, spec in zip(inputs, self.inputs, strict=True):
            if tuple(tensor.shape) != wanted[spec["name"]]:
                return f"{spec['name']} has shape {tuple(tensor.shape)} instead of {wanted[spec['name']]}"
        return {name: axes[name] for name in self.axes}

    def _ready(self, kernel: dict[str, Any]) -> Run | None:
        """The kernel loaded, once; None where that failed, which is said once."""
        name = kernel["id"]
        if name not in self._loaded:
            with self._lock:
                if name not in self._loaded:
                    try:
                        self._loaded[name] = load(self.folder / "kernels" / kernel["folder"], kernel)
                    except (CannotLoad, OSError, AttributeError) as error:
                        self._loaded[name] = None
                        text = f"{self.name}: kernel {name} cannot be loaded, the fallback serves: {error}"
                        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return self._loaded[name]

    def _output_dtype(self, spec: dict[str, Any], shapes: dict[str, Any]) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, shapes["dtype"] if spec["dtype"] == "dtype" else spec["dtype"])
        return dtype

    def _empty(self, inputs: Sequence[Any], shapes: dict[str, Any]) -> list[torch.Tensor]:
        device = inputs[0].device
        return [
            torch.empty(shapes[s["name"]], dtype=self._output_dtype(s, shapes), device=device) for s in self.outputs
        ]

    def _fit(self, inputs: Sequence[Any], outputs: Sequence[Any], shapes: dict[str, Any]) -> bool:
        """Whether a kernel may write straight into what the caller gave."""
        if len(outputs) != len(self.outputs):
            raise TypeError(f"{self.name} has {len(self.outputs)} outputs, {len(outputs)} were given")
        for tensor, spec in zip(outputs, self.outputs, strict=True):
            if tuple(tensor.shape) != shapes[spec["name"]] or tensor.dtype != self._output_dtype(spec, shapes):
                return False
        apart = all(not _overlap(a, b) for i, a in enumerate(outputs) for b in (*inputs, *outputs[i + 1 :]))
        return apart and all(t.device == inputs[0].device for t in outputs)

    def _fall_back(self, inputs: Sequence[Any], outputs: Sequence[Any] | None, given: Mapping[str, int]) -> Any:
        if self._fallback is not None:
            made = self._fallback(*inputs, **given)
            made = list(made) if isinstance(made, tuple | list) else [made]
        else:
            made = self._by_baseline(inputs, given)
        if outputs is None:
            return made
        for target, value in zip(outputs, made, strict=True):
            target.copy_(value)
        return outputs

    def _by_baseline(self, inputs: Sequence[Any], given: Mapping[str, int]) -> list[torch.Tensor]:
        """The default that the package was exported with: a function by its name, or a file that writes its outputs."""
        if "function" in self._default:
            self._fallback = imported(self._default["function"])
            made = self._fallback(*inputs, **given)
            return list(made) if isinstance(made, tuple | list) else [made]
        axes, dtype = self._solve(inputs, given), self._dtype(inputs)
        if isinstance(axes, str) or dtype is None:
            raise ValueError(
                f"{self.name}: {axes if isinstance(axes, str) else 'the dtypes are not those of the operator'}"
            )
        outputs = self._empty(inputs, {"dtype": dtype, **self.shapes(**axes)})
        with self._lock:
            if "baseline" not in self._loaded:
                function = python_function(self.folder / "baselines" / self.name, self._default["file"])
                self._loaded["baseline"] = lambda i, o, a: function(*i, *o)
        run = self._loaded["baseline"]
        assert run is not None
        run(inputs, outputs, tuple(axes.values()))
        return outputs


def imported(name: str) -> Callable[..., Any]:
    """``package.module:attribute.attribute``."""
    from importlib import import_module

    module, _, path = name.partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def _why_not_as_they_are(inputs: Sequence[Any], outputs: Sequence[Any] | None) -> str:
    """What speaks against handing these very tensors to a kernel: it reads plain memory, and has no gradient."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
        return "a gradient is wanted, and a kernel has none"
    for tensor in (*inputs, *(outputs or ())):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return f"{type(tensor).__name__} is no plain tensor"
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            return "a tensor is not contiguous"
        if tensor.data_ptr() % ALIGNMENT_BYTES:
            return f"a tensor does not begin at a multiple of {ALIGNMENT_BYTES} bytes"
    return ""


def _is_hardware(kernel: dict[str, Any], device: torch.device) -> bool:
    """A kernel is fast where it was measured: on a GPU of the same name. A processor is taken for any."""
    return device.type == "cpu" or torch.cuda.get_device_name(device) == kernel["hardware"]


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.device != b.device:
        return False
    a_end, b_end = (t.data_ptr() + t.untyped_storage().nbytes() - t.storage_offset() * t.itemsize for t in (a, b))
    return a.data_ptr() < b_end and b.data_ptr() < a_end
