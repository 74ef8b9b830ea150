"""A process in a sandbox as this side sees it: what it prints, what it holds, what runs in it, and how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from . import sandbox
from .endings import outcome_of, signal_words
from .errors import CandidateFailure, Stopped
from .processes import children, cpu_clock, is_stopped
from .report import Outcome

HEAD_BYTES = TAIL_BYTES = 16 << 10
POLL_MS = 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Output:
    """What a process printed: the first and the last bytes, whatever came between."""

    def __init__(self) -> None:
        self.head, self.tail, self.total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        del self.tail[:-TAIL_BYTES]

    def text(self) -> str:
        left_out = self.total - len(self.head) - len(self.tail)
        middle = f"\n… {left_out} bytes left out …\n".encode() if left_out else b""
        return (bytes(self.head) + middle + bytes(self.tail)).decode(errors="replace").replace("\0", "\ufffd")


class Contained:
    """Nothing here asks it anything: it is read from the kernel's files."""

    def __init__(self, spec: sandbox.Spec, started: sandbox.Started, should_stop: Callable[[], bool] | None) -> None:
        self.spec, self.started = spec, started
        self.output = Output()
        self.should_stop = should_stop or (lambda: False)
        self.closed = False
        self.frozen = False
        self._pid: int | None = None
        self.max_threads: int | None = None
        """More threads than this, or a second process, end it. None: as many as the limits allow."""

    def exited(self) -> bool:
        return self.started.process.poll() is not None

    @property
    def pid(self) -> int:
        """The runner's own process, as this side sees it."""
        if self._pid is None:
            init = self.started.init_pid
            found = children(init) if self.started.sandboxed else [init]
            if not found:
                raise CandidateFailure("launch_failed", self._end("while starting"))
            self._pid = found[0]
        return self._pid

    def cpu_ns(self) -> int:
        """The processor time of its process so far, as the kernel counts it. 0 once it is gone."""
        try:
            return time.clock_gettime_ns(cpu_clock(self.pid))
        except OSError:
            return 0

    def memory_bytes(self) -> tuple[int, int]:
        """Private and shared resident memory of all its processes."""
        private = shared = 0
        for pid in self.processes():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm", "rb") as file:
                    resident, common = (int(n) * PAGE_BYTES for n in file.read().split()[1:3])
                private, shared = private + resident - common, max(shared, common)
        return private, shared

    def processes(self) -> list[int]:
        """Every process in the sandbox but bubblewrap's own."""
        found, todo = [], [self.pid]
        if self.started.sandboxed:  # a child whose parent ended belongs to the first process of the namespace
            todo = children(self.started.init_pid)
        while todo:
            found.append(pid := todo.pop())
            todo += children(pid)
        return found

    def threads(self) -> int:
        """Threads of all its processes, from /proc: 1 for a program that started none."""
        count = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                count += len(os.listdir(f"/proc/{pid}/task"))
        return count

    def extra_words(self) -> str:
        """What it runs in beyond one process and the threads that it is allowed; nothing when that is all."""
        processes, threads = len(self.processes()) - 1, self.threads() - (self.max_threads or 1)
        if processes > 0:
            return f"it runs in {processes + 1} processes: a kernel has one, and one core is timed"
        return f"it runs in {threads} more threads: one core and one thread are timed" if threads > 0 else ""

    def freeze(self) -> None:
        """Stop all its processes, and wait until they are: what is in memory now is what its calls left."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + 2
        while time.monotonic() < until and not all(is_stopped(pid) for pid in self.processes()):
            time.sleep(0)
        self.frozen = True

    def thaw(self) -> None:
        if self.frozen:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.frozen = False

    def drain(self) -> bool:
        """Take what it printed. False at the end of the stream."""
        for _ in range(64):
            try:
                data = os.read(self.started.output_fd, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            self.output.add(data)
        return True

    def _death(self, when: str) -> tuple[Outcome, str]:
        return outcome_of(self.exit_status(), self.output.text()), self._end(when)

    def exit_status(self) -> int | None:
        """The exit status as a shell gives it (128 + signal), or None when it still lives."""
        until = time.monotonic() + 2
        while time.monotonic() < until:
            self.drain()
            if (status := self.started.process.poll()) is not None:
                self.drain()
                return 128 - status if status < 0 else status
            time.sleep(0.002)
        return None

    def _end(self, when: str) -> str:
        status = self.exit_status()
        if status is None:
            return f"closed its line to the evaluator {when}"
        if status > 128:
            return f"crashed {when}: {signal_words(status - 128)}"
        return f"ended its own process {when} (exit status {status})"

    def wait_end(self, limit_s: float) -> int | None:
        """Wait until the process ends: its exit status, or None at the limit. Its output is drained meanwhile."""
        poll = select.poll()
        poll.register(self.started.output_fd, select.POLLIN)
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if self.should_stop():
                self.close()
                raise Stopped
            if self.started.process.poll() is not None:
                return self.exit_status()
            poll.poll(POLL_MS)
            if not self.drain():
                time.sleep(0.002)
        return None

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.drain()
            self.started.close()
