"""One child process of the supervisor: started, waited for, restarted when it dies, its output prefixed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .guard import Guard, kill_sessions

VERBOSE = os.environ.get("LOG_LEVEL", "").upper() in ("INFO", "DEBUG")
CHATTER = re.compile(r"\bINFO\b|Memory overcommit must be enabled")
"""Celery says at INFO when it is ready, and then every task; the first is needed, the rest nobody reads. The broker asks for
a system setting that matters to who saves to disk, which ours does not."""


@dataclass
class Service:
    name: str
    argv: list[str]
    env: dict[str, str]
    log: Callable[[str, str], None]
    guard: Guard
    ready_line: str | None = None
    """A piece of an output line by which it says that it is ready; None: ``is_ready`` tells."""
    is_ready: Callable[[], bool] | None = None
    cwd: Path | None = None
    process: subprocess.Popen[str] | None = None
    restarts: int = 0
    started_at: float = 0.0
    ready: threading.Event = field(default_factory=threading.Event)
    tail: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.ready.clear()
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.argv,
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.guard.add(self.process.pid)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            line = line.rstrip()
            self.tail = [*self.tail[-30:], line]
            if self.ready_line and self.ready_line in line:
                self.ready.set()
            if line and (VERBOSE or not CHATTER.search(line)):
                self.log(self.name, line)

    def wait_ready(self, within_s: float) -> bool:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if self.ready.wait(0.02) or (self.is_ready and self.is_ready()):
                self.ready.set()
                return True
            if self.process is None or self.process.poll() is not None:
                return False
        return False

    def died(self) -> int | None:
        """Its exit status when it ended by itself; None while it runs."""
        return self.process.poll() if self.process else None

    def restart(self) -> None:
        """Kill what the dead process left behind, and begin again, later each time that it dies young."""
        if self.process:
            kill_sessions({self.process.pid})
            self.guard.drop(self.process.pid)
        young = time.monotonic() - self.started_at < 10
        self.restarts = self.restarts + 1 if young else 0
        time.sleep(min(0.5 * self.restarts, 10))
        self.start()

    def ask_to_end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)

    def stop(self, within_s: float = 5) -> None:
        """Wait that long for it to end, once it was asked to, and kill what is left then."""
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        kill_sessions({self.process.pid})
        self.process.wait()


def prefixed(name: str, line: str) -> None:
    sys.stderr.write(f"{name:<9}│ {line}\n")
    sys.stderr.flush()
