"""Which arithmetic an error looks like: RMS of the error over RMS of what was expected, by the declared dtype.

A product of two operands rounded to p bits errs by about 2^-p ÷ √3, relative; sums of many such terms of random sign keep
that size. TF32 and float16 keep 11 bits (3e-4), bfloat16 8 (2e-3), float8_e4m3 4 (3e-2). float32 itself stays below 1e-5.
"""

from __future__ import annotations

BANDS = {
    "float32": (
        (
            2e-5,
            9e-4,
            "TF32 or float16",
            "set input_precision='ieee' (Triton) or torch.backends.cuda.matmul.allow_tf32 = False",
        ),
        (9e-4, 8e-3, "bfloat16", "keep operands and sums in float32"),
    ),
    "bfloat16": ((1e-2, 0.12, "float8", "keep operands in bfloat16 and sums in float32"),),
    "float16": ((1e-2, 0.12, "float8", "keep operands in float16 and sums in float32"),),
}


def name(dtype: str, rms_error: float) -> str | None:
    """The lower precision that an error of this size is typical for, or None."""
    return next((band[2] for band in BANDS.get(dtype, ()) if band[0] <= rms_error < band[1]), None)


def explain(dtype: str, rms_error: float) -> str | None:
    """A sentence that names it, with the number and what to do."""
    for low, high, what, advice in BANDS.get(dtype, ()):
        if low <= rms_error < high:
            return f"the error ({rms_error:.1e} of the RMS) is typical of {what} inside a {dtype} operator: {advice}"
    return None
