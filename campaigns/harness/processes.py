"""Processes as the kernel's files show them: children, states, clocks. Nothing here trusts what a process says of itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


def cpu_clock(pid: int) -> int:
    """The clock of the processor time of all threads of a process: clock_getcpuclockid(3), for any process."""
    return (~pid << 3) | 2


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    found += [int(n) for n in file.read().split()]
            except FileNotFoundError:
                if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
                    continue
                return _children_by_search(pid)
            except OSError:
                continue
    return found


def _children_by_search(pid: int) -> list[int]:
    """For kernels without CONFIG_PROC_CHILDREN."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                    found.append(int(name))
    return found


def _task_states(pid: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
                yield file.read().rpartition(b")")[2].split()[0]


def is_stopped(pid: int) -> bool:
    return all(state in (b"T", b"t", b"Z", b"X") for state in _task_states(pid))
