"""Where a kernel serves, and how much faster it is there. Plain data; no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def outside(kernel: dict[str, Any], dtype: str, axes: Mapping[str, int]) -> str:
    """Why the kernel does not serve these axes: outside what was tested right, or outside what was approved."""
    approved = kernel["range"]
    if approved:
        lo, hi, value = approved["lo"], approved["hi"], axes[approved["axis"]]
        if not lo <= value <= hi:
            return f"{approved['axis']} = {value} is outside the approved {lo} to {hi}"
    for name, (lo, hi) in kernel["tested"][dtype].items():
        if not lo <= axes[name] <= hi:
            return f"{name} = {axes[name]} is outside the tested {lo} to {hi}"
    return ""


def gain_near(kernel: dict[str, Any], dtype: str, axes: Mapping[str, int]) -> tuple[float, str]:
    """The speed-up at the nearest measured workload, by the sum of the axes' logarithmic distances."""
    points = [p for p in kernel["points"] if p["dtype"] == dtype]
    if not points:
        return 0.0, "no measured workload"
    near = min(points, key=lambda p: sum(abs(math.log(axes[n] / p["axes"][n])) for n in axes))
    return float(near["speedup"]), ", ".join(f"{name} {value}" for name, value in near["axes"].items())
