"""A candidate's calls under torch.profiler: what the page of a profile shows. The harness's own phases are ranges in it.

From the moment that it loaded, this process is the candidate's: the file is data for an importer, and proves nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

WARM_UP, MEASURED = "harness: warm-up", "harness: measured"
"""Names of the phases. Compare two captures by ``MEASURED``."""


def phases(calls: Sequence[Callable[[], Any]], warm: int) -> Iterator[tuple[Callable[[], Any], str]]:
    """Each call with the name of its phase, which is an NVTX range around it where there is a GPU."""
    import torch

    on_gpu = torch.cuda.is_available()
    for index, call in enumerate(calls):
        name = WARM_UP if index < warm else MEASURED
        if on_gpu:
            torch.cuda.nvtx.range_push(name)
        yield call, name
        if on_gpu:
            torch.cuda.nvtx.range_pop()


def trace(calls: Sequence[Callable[[], Any]], warm: int, sync: Callable[[], Any], fd: int, most_bytes: int) -> int:
    """Make the calls, the first ``warm`` of them as warm-up; write a Kineto trace in gzip to ``fd``.

    Returns its length in bytes. ``fd`` is closed.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    path = os.path.join(tempfile.gettempdir(), "trace.json.gz")
    try:
        with profile(activities=activities, record_shapes=True) as profiler:
            for call, name in phases(calls, warm):
                with record_function(name):
                    call()
                    sync()
        profiler.export_chrome_trace(path)
        size = os.path.getsize(path)
        if size > most_bytes:
            raise RuntimeError(f"the trace has {size:,} bytes in gzip, of which {most_bytes:,} are kept")
        with open(path, "rb") as file, os.fdopen(os.dup(fd), "wb") as kept:
            kept.write(file.read())
        return size
    finally:
        os.close(fd)
        if os.path.exists(path):
            os.unlink(path)
