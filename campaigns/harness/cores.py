"""Which core is timed, one evaluation at a time: a lock file keeps the others, also of other processes, waiting. And which
cores work for which GPU."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator

from .errors import Infrastructure, Stopped

WAIT_S = 600.0
"""How long an evaluation waits for a core before it is given up as not measured."""


def timing_cores() -> list[int]:
    """The cores that may be timed: all but the first, where there is more than one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[:0:-1] or allowed


LEAST_EACH = 4
"""Cores for each GPU, below which all GPUs share all cores."""


def count() -> int:
    """How many cores this thread, and what it starts, may use."""
    return len(os.sched_getaffinity(0))


def share(number: int, of: int) -> set[int]:
    """The cores that work for GPU ``number`` of ``of``: as many for each, neighbours together, where that leaves a few for each.

    What one campaign compiles disturbed what another timed: two incumbents of the same code differed by 4 to 19 % on a host
    with 32 cores and two GPUs, and by 1 to 2 % with 16 cores for each (docs/results/h200-first-campaigns.md).
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < of * LEAST_EACH:
        return set(allowed)
    return set(allowed[number * len(allowed) // of : (number + 1) * len(allowed) // of])


@contextlib.contextmanager
def kept_to(core_set: set[int]) -> Iterator[None]:
    """This thread, and every thread and process that it starts, keeps to these cores while the block runs."""
    allowed = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):  # a container may have been given other cores since
        os.sched_setaffinity(0, core_set)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed)


def _open(core: int) -> int:
    path = os.path.join(tempfile.gettempdir(), f"autoresearch-{os.getuid()}-core-{core}.lock")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


@contextlib.contextmanager
def reserved(should_stop: Callable[[], bool], limit_s: float) -> Iterator[int]:
    """A core of one's own while the block runs; this thread keeps to the other cores meanwhile."""
    allowed = os.sched_getaffinity(0)
    core, fd = _reserve(should_stop, time.monotonic() + limit_s)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, (allowed - {core}) or allowed)
        yield core
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):  # a container may have been given other cores since
            os.sched_setaffinity(0, allowed)


def _reserve(should_stop: Callable[[], bool], until: float) -> tuple[int, int]:
    while True:
        for core in timing_cores():
            fd = _open(core)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return core, fd
            except BlockingIOError:
                os.close(fd)
        if should_stop():
            raise Stopped
        if time.monotonic() > until:
            raise Infrastructure("every core that may be timed is in use by other evaluations: try again later")
        time.sleep(0.05)


_FIFO = os.SCHED_FIFO | getattr(os, "SCHED_RESET_ON_FORK", 0x40000000)


def urgent(pid: int, yes: bool) -> None:
    """Let a thread come before all ordinary ones while a block is timed, where we may (root): nobody preempts it.

    A nice value would not do: with autogroups it counts inside one session only. What it starts does not inherit it.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, _FIFO if yes else os.SCHED_OTHER, os.sched_param(1 if yes else 0))


def pin(pid: int, core_set: set[int]) -> None:
    """Move all threads of a process that waits."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), core_set)
