"""Values as a lower precision would hold them, rounded to nearest even, and back in their own storage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LOWER = {
    "float64": ("float32",),
    "float32": ("tfloat32", "float16", "bfloat16"),
    "float16": ("bfloat16", "float8_e4m3fn"),
    "bfloat16": ("float8_e4m3fn",),
}
"""What a kernel might use instead of the declared type, from the finest on."""
SIGNIFICANT_BITS = {"float32": 24, "tfloat32": 11, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4}
SMALLEST = {"float16": 2.0**-24, "float8_e4m3fn": 2.0**-9 / 448.0}
"""The spacing of subnormals; for FP8 as a share of the largest value, since kernels scale to it."""
LARGEST = {"float16": 65504.0}


def rounded(values: NDArray[np.float64], lower: str) -> NDArray[np.float64]:
    """The values as ``lower`` would hold them. FP8 is scaled by the tensor's largest value, as kernels do."""
    bits = SIGNIFICANT_BITS[lower]
    fraction, exponent = np.frexp(values)
    found = np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)
    if lower in SMALLEST:
        step = SMALLEST[lower] * (np.abs(values).max(initial=0.0) if lower.startswith("float8") else 1.0)
        if step > 0:
            found = np.where(np.abs(values) < step * (1 << (bits - 1)), np.rint(values / step) * step, found)
    return np.clip(found, -LARGEST[lower], LARGEST[lower]) if lower in LARGEST else found


def stored(values: NDArray[np.float64], dtype: str) -> NDArray[np.uint8]:
    """The bytes of a contiguous tensor of ``dtype`` with these values. Raises ``KeyError`` for FP8."""
    if dtype == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        found = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    else:
        found = values.astype({"float64": "f8", "float32": "f4", "float16": "f2"}[dtype])
    return np.ascontiguousarray(found).reshape(-1).view(np.uint8)
