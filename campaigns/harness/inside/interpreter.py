"""Triton's interpreter, mended: it loses the carry when a value is rounded up to FP8 (124.5 becomes 64 instead of 128).

Seen in Triton 3.5 to 3.7, ``runtime/interpreter.py: _convert_float``. On a GPU the conversion saturates and rounds to
nearest even; torch does the same once the values are in range.
"""

from __future__ import annotations

from typing import Any

LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
NAMES = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}


def mend() -> None:
    """Call before a candidate is loaded. Does nothing where Triton has no such function."""
    try:
        import torch
        from triton.runtime import interpreter
    except ImportError:
        return
    convert = getattr(interpreter, "_convert_float", None)
    if convert is None:
        return

    def rounded(values: Any, from_dtype: Any, to_dtype: Any, mode: Any) -> Any:
        name = NAMES.get(str(to_dtype))
        if name is None or str(from_dtype) != "fp32" or values.dtype.kind != "f":
            return convert(values, from_dtype, to_dtype, mode)
        within = torch.from_numpy(values.copy()).clamp(-LARGEST[name], LARGEST[name])
        return within.to(getattr(torch, name)).view(torch.uint8).numpy()

    interpreter._convert_float = rounded
