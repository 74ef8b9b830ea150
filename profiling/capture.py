"""How Nsight Systems and Nsight Compute are called on a host where they are installed. No Django.

Clocks are never changed: ncu is told to leave them alone. The trace of torch.profiler is taken inside the process that
runs the kernel (``campaigns/harness/inside/trace.py``).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

PRODUCTS = {"nsys": ".sqlite", "ncu": ".ncu-rep"}
"""What each tool leaves, by ending."""
MAX_TRACE_BYTES = 16 << 20
"""Traces of a few calls have 10 to 900 kB in gzip, reports of nsys and ncu a few MB; this is the most that is kept."""

MOST_KERNELS = 8
"""That ncu looks at: each is run some forty times, and has 0.9 to 1.2 MB in the report."""


def installed() -> dict[str, str]:
    """Where nsys and ncu are, of those that are on the PATH."""
    return {tool: path for tool in PRODUCTS if (path := shutil.which(tool))}


def command(tool: str, path: str, program: Sequence[str], report: Path, phase: str) -> list[str]:
    """The command that runs ``program`` under ``tool`` and leaves ``report`` with the ending of ``PRODUCTS``.

    :param phase: the NVTX range whose kernels ncu is to look at.
    """
    if tool == "nsys":
        return nsys_command(program, report, path)
    return ncu_command(program, report, phase, ncu=path)


def nsys_command(program: Sequence[str], report: Path, nsys: str = "nsys") -> list[str]:
    """The command that runs ``program`` under Nsight Systems and exports it, without environment or CPU samples."""
    return [
        nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node",
        "--force-overwrite=true", "--export=sqlite", f"--output={report.with_suffix('')}", *program,
    ]  # fmt: skip


def ncu_command(
    program: Sequence[str], report: Path, phase: str, kernels: int = MOST_KERNELS, ncu: str = "ncu"
) -> list[str]:
    """The command that runs ``program`` under Nsight Compute: counters of the first ``kernels`` kernels of the phase,
    clocks left as they are.
    """
    return [
        ncu, "--clock-control", "none", "--set", "full", "--nvtx", "--nvtx-include", f"{phase}/",
        "--launch-count", str(kernels), "--force-overwrite", "--export", str(report), *program,
    ]  # fmt: skip
