"""A process that outlives a killed supervisor just long enough to end all that the supervisor had started.

Every service is the leader of a session of its own. The supervisor holds the writing end of a pipe and writes each
leader's pid; when the pipe closes, for whatever reason, every process of those sessions is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def session_of(pid: int) -> int | None:
    """The session id of a process, from ``/proc/<pid>/stat``; None when it has gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rsplit(")", 1)[1].split()[3])


def kill_sessions(leaders: set[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to every process whose session is led by one of ``leaders``, until none is left."""
    for _ in range(5):
        pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
        members = [pid for pid in pids if session_of(pid) in leaders]
        if not members:
            return
        for pid in members:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        if number != signal.SIGKILL:
            return


class Guard:
    """The supervisor's handle on its guard."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        if os.fork() == 0:
            os.close(self._writing)
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            _watch(reading)
            os._exit(0)
        os.close(reading)

    def add(self, pid: int) -> None:
        os.write(self._writing, f"{pid}\n".encode())

    def close(self) -> None:
        os.close(self._writing)


def _watch(reading: int) -> None:
    leaders: set[int] = set()
    with os.fdopen(reading) as lines:
        for line in lines:
            leaders.add(int(line))
    kill_sessions(leaders)
    sys.stdout.flush()
