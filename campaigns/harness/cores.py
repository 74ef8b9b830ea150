"""Which core is timed. One evaluation at a time has it: a lock file keeps the others, also of other processes, waiting."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator

from .errors import Infrastructure, Stopped

WAIT_S = 600.0


def timing_cores() -> list[int]:
    """The cores that may be timed: all but the first, where there is more than one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[:0:-1] or allowed


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
        os.sched_setaffinity(0, allowed)
        os.close(fd)


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
