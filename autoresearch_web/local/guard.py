"""A process that outlives a killed supervisor just long enough to end all that the supervisor had started.

Every service is the leader of a session of its own. The supervisor holds the writing end of a pipe and writes each
leader's pid, and takes it back, as a negative number, when it has ended. When the pipe closes, for whatever reason, every
process of those sessions is killed.
"""

from __future__ import annotations

import contextlib
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
    """The supervisor's handle on its guard, which may be killed like any other process: then there is another one."""

    def __init__(self) -> None:
        self.leaders: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        reading, self._writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            for fd in map(int, os.listdir("/proc/self/fd")):
                if fd > 2 and fd != reading:
                    with contextlib.suppress(OSError):
                        os.close(fd)
            _watch(reading)
            os._exit(0)
        os.close(reading)
        for pid in self.leaders:
            self._tell(pid)

    def _tell(self, pid: int) -> None:
        os.write(self._writing, f"{pid}\n".encode())

    def add(self, pid: int) -> None:
        self.leaders.add(pid)
        if not self.renew():
            self._tell(pid)

    def drop(self, pid: int) -> None:
        """Its session has ended: the number may soon be somebody else's."""
        self.leaders.discard(pid)
        if not self.renew():
            self._tell(-pid)

    def renew(self) -> bool:
        """Where the guard has died: another one that knows the same. Whether it had."""
        try:
            gone, _ = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            gone = self.pid
        if gone:
            os.close(self._writing)
            self._begin()
        return bool(gone)

    def close(self) -> None:
        os.close(self._writing)


def _watch(reading: int) -> None:
    leaders: set[int] = set()
    with os.fdopen(reading) as lines:
        for line in lines:
            pid = int(line)
            if pid > 0:
                leaders.add(pid)
            else:
                leaders.discard(-pid)
    kill_sessions(leaders)
    sys.stdout.flush()
