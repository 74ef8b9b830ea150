"""Profile a kernel on the host where it runs: torch.profiler always, nsys and ncu where they are installed.

No Django, and torch only when a capture is taken. Whoever evaluates calls ``torch_trace`` around a run, or starts a
program under ``nsys_command`` or ``ncu_command``. Clocks are never changed: ncu is told to leave them alone. The phases of
the caller (inputs, warm-up, measured calls) are ranges in the capture, so that they are not taken for the candidate.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WARM_UP, MEASURED = "harness: warm-up", "harness: measured"
"""Names of the phases. Compare two captures by ``MEASURED``."""


@contextmanager
def phase(name: str) -> Iterator[None]:
    """A range around a part of the harness: NVTX where there is a GPU (nsys, ncu), and a range of torch.profiler."""
    import torch

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.nvtx.range_push(name)
    try:
        with torch.profiler.record_function(name):
            yield
            if on_gpu:
                torch.cuda.synchronize()
    finally:
        if on_gpu:
            torch.cuda.nvtx.range_pop()


def torch_trace(run: Callable[[], Any], file: Path, warm_up: int = 3, measured: int = 5) -> Path:
    """Profile ``run`` with torch.profiler into ``file``, a Kineto trace (``.json`` or ``.json.gz``) that imports as one.

    :param run: one call of the candidate, outputs passed in; runs ``warm_up`` and then ``measured`` times.
    :raises ValueError: for a count below 1, or a file with another ending.
    :raises Exception: whatever ``run`` raises; no file is left then.
    """
    if warm_up < 1 or measured < 1:
        raise ValueError(f"warm_up={warm_up}, measured={measured}: both have to be at least 1")
    if not file.name.endswith((".json", ".json.gz")):
        raise ValueError(f"{file.name}: torch.profiler writes .json or .json.gz")
    from torch.profiler import profile

    part = file.with_name(f"part-{file.name}")
    try:
        with profile(activities=activities(), record_shapes=True, with_stack=False) as profiler:
            for name, times in ((WARM_UP, warm_up), (MEASURED, measured)):
                for _ in range(times):
                    with phase(name):
                        run()
        profiler.export_chrome_trace(str(part))
        return part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def activities() -> list[Any]:
    import torch
    from torch.profiler import ProfilerActivity

    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]


def installed() -> dict[str, str]:
    """Where nsys and ncu are, of those that are on the PATH."""
    return {tool: path for tool in ("nsys", "ncu") if (path := shutil.which(tool))}


def nsys_command(program: Sequence[str], report: Path, nsys: str = "nsys") -> list[str]:
    """The command that runs ``program`` under Nsight Systems and exports it, without environment or CPU samples."""
    return [
        nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node",
        "--force-overwrite=true", "--export=sqlite", f"--output={report.with_suffix('')}", *program,
    ]  # fmt: skip


def ncu_command(program: Sequence[str], report: Path, kernels: int = 20, ncu: str = "ncu") -> list[str]:
    """The command that runs ``program`` under Nsight Compute: counters of the first ``kernels`` kernels of the measured
    phase, clocks left as they are.
    """
    return [
        ncu, "--clock-control", "none", "--set", "full", "--nvtx", "--nvtx-include", f"{MEASURED}/",
        "--launch-count", str(kernels), "--force-overwrite", "--export", str(report), *program,
    ]  # fmt: skip
