"""The evaluator's end of the line to a process in a sandbox: it believes nothing that it is told but "done"."""

from __future__ import annotations

import array
import contextlib
import json
import os
import secrets
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import cores, sandbox
from .contained import POLL_MS, Contained
from .endings import printable, reason
from .errors import CandidateFailure, Stopped, forged
from .inside.link import MAX_FDS, MAX_MESSAGE_BYTES
from .processes import cpu_clock
from .report import Outcome

URGENT_S = 0.5
SPIN_NS = 20_000_000
"""The evaluator spins this long for the answer of a block on a CPU before it sleeps between looks."""
ASK_SPIN_NS = 50_000
"""And this long for all other answers (a draw, a map): nothing that is timed hangs on them, and spinning through them took a third
of the evaluator's processor time, which whoever draws could have had."""
SHARED_ALLOWANCE_BYTES = 2 << 30


class Took(NamedTuple):
    """One block by both clocks, in nanoseconds.

    ``wall_ns`` is the evaluator's own and decides. ``cpu_ns`` is the processor time of all threads of the process, as
    the kernel counts it: where the two disagree the block was disturbed (preempted, or its host took the core away)
    or did not do its own work, and does not count. ``outside_ns`` is the processor time that it used for the block
    while this clock did not run: between waking and "go", and between its answer and being stopped.
    """

    cpu_ns: int
    wall_ns: int
    outside_ns: int = 0


class Channel(Contained):
    """One process in a sandbox, asked one thing at a time.

    Whatever it does wrong raises ``CandidateFailure``; the caller decides whether a candidate is to blame.
    """

    spin_ns = SPIN_NS
    """How long it looks without sleeping for an answer that is not timed: what is said "go" next must not be kept waiting."""
    block_spin_ns = SPIN_NS
    """The same for an answer that is timed."""

    def __init__(
        self, spec: sandbox.Spec, should_stop: Callable[[], bool] | None = None, extra_fds: tuple[int, ...] = ()
    ) -> None:
        self._hello = secrets.token_hex(8)
        super().__init__(spec, sandbox.start(spec, self._hello, extra_fds), should_stop)
        self.mapped_bytes = 0
        self.urgent = False
        """Whether its blocks come before everything else on their core, and so does this side."""
        self._hurries = False
        self._looked_ns = 0
        """When it was last looked for a message and none was there."""
        self.kept_waiting_ns = 0
        """So long at most it span for the last "go", having said that it was ready: this side was late."""

    def wait_ready(self, limit_s: float) -> None:
        """Wait until the role inside is ready. Asked again, it returns at once."""
        if self._hello:
            self._answer(self._hello, limit_s, "starting")
            self._hello = ""

    def ask(self, what: str, limit_s: float, fds: list[int] | None = None, **more: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        nonce = self.send(what, fds, **more)
        return self._read(self._wait(limit_s, what, ASK_SPIN_NS), nonce)

    def send(self, what: str, fds: list[int] | None = None, **more: Any) -> str:
        """Send one request. One that is too long for a message goes as a file, its descriptor the last that comes along."""
        nonce = secrets.token_hex(8)
        data, passed = json.dumps({"id": nonce, "do": what, **more}).encode(), list(fds or [])
        with contextlib.ExitStack() as stack:
            if len(data) > MAX_MESSAGE_BYTES:
                passed.append(os.memfd_create("request", os.MFD_CLOEXEC))
                stack.callback(os.close, passed[-1])
                os.pwrite(passed[-1], data, 0)
                data = json.dumps({"id": nonce, "long_bytes": len(data)}).encode()
            assert len(passed) <= MAX_FDS
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))] if passed else []
            self._looked_ns = time.perf_counter_ns()
            try:
                self.started.line.sendmsg([data], rights)
            except OSError:
                raise CandidateFailure("launch_failed", self._end(f"before {what}")) from None
        return nonce

    def receive(self, nonce: str, limit_s: float, what: str) -> dict[str, Any]:
        return self._answer(nonce, limit_s, what)

    def timed(self, word: str, nonce: str, limit_s: float) -> Took:
        """Say go; how long until the answer came, by two clocks."""
        took, data = self._clocked(word, cpu_clock(self.pid), limit_s)
        if self._read(data, nonce).get("word") != word:
            raise forged("answered before it was told to start")
        return took

    def stopped(self, word: str, nonce: str, limit_s: float, after_ns: int, midway: Callable[[], None]) -> float:
        """Say go; stop it when it has used the processor for ``after_ns``, look, and let it go on to its answer.

        Returns the share of its processor time until the answer that it had used when it stopped.
        """
        clock, until = cpu_clock(self.pid), time.monotonic() + limit_s
        try:
            began_ns = time.clock_gettime_ns(clock)
            self.started.line.send(word.encode())
            while time.clock_gettime_ns(clock) - began_ns < after_ns and time.monotonic() < until:
                if _has_message(self.started.line):
                    break
                if after_ns > SPIN_NS:
                    time.sleep(0.0002)
            self.freeze()
            used_ns = time.clock_gettime_ns(clock) - began_ns
            midway()
            self.thaw()
            data = self._wait(limit_s, "a call")
            total_ns = time.clock_gettime_ns(clock) - began_ns
        except OSError:
            raise CandidateFailure(*self._death("during a call")) from None
        if self._read(data, nonce).get("word") != word:
            raise forged("answered before it was told to start")
        return used_ns / max(1, total_ns)

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Both sides come before everything else on their cores, where that is asked for and can be had."""
        pid = self.pid
        self._hurry(pid, self.urgent)
        try:
            yield
        finally:
            self._hurry(pid, False)

    def _hurry(self, pid: int, yes: bool) -> None:
        if yes or self._hurries:
            cores.urgent(pid, yes)
            cores.urgent(0, yes)
            self._hurries = yes

    def _clocked(self, word: str, clock: int, limit_s: float) -> tuple[Took, bytes]:
        try:
            cpu_ns = time.clock_gettime_ns(clock)
            began_ns = time.perf_counter_ns()
            self.kept_waiting_ns = began_ns - self._looked_ns
            self.started.line.send(word.encode())
        except OSError:
            raise CandidateFailure(*self._death("before its first call")) from None
        data = self._wait(limit_s, "a call", self.block_spin_ns)
        wall_ns = time.perf_counter_ns() - began_ns
        try:
            cpu_ns = time.clock_gettime_ns(clock) - cpu_ns
        except OSError:
            raise CandidateFailure(*self._death("after a call")) from None
        return Took(max(1, cpu_ns), max(1, wall_ns)), data

    def _answer(self, nonce: str, limit_s: float, what: str) -> dict[str, Any]:
        return self._read(self._wait(limit_s, what), nonce)

    def _read(self, data: bytes, nonce: str) -> dict[str, Any]:
        try:
            answer = json.loads(data)
            known = isinstance(answer, dict) and answer.get("id") == nonce
        except (ValueError, RecursionError):
            known = False
        if not known:
            raise forged("sent a message that no request asked for")
        if answer.get("ok") is not True:
            error = printable(str(answer.get("error", "no reason given"))[-4000:])
            self.output.add(error.encode())
            kind: Outcome = "out_of_memory" if answer.get("memory") is True else "launch_failed"
            raise CandidateFailure(kind, reason(error))
        return answer

    def _wait(self, limit_s: float, what: str, spin_ns: int | None = None) -> bytes:
        """The next message. Meanwhile its output is drained, and its memory, time and processes are watched.

        For so long it looks again at once; then it sleeps until something comes.
        """
        spin_ns = self.spin_ns if spin_ns is None else spin_ns
        line = self.started.line
        began = time.perf_counter_ns()
        poll = select.poll()
        poll.register(line, select.POLLIN)
        poll.register(self.started.output_fd, select.POLLIN)
        while True:
            try:
                data = self._receive(line)
            except BlockingIOError:
                pass
            else:
                if not data:
                    raise CandidateFailure(*self._death(f"during {what}"))
                return data
            self._looked_ns = time.perf_counter_ns()
            elapsed_ns = self._looked_ns - began
            if elapsed_ns < spin_ns:
                continue
            ready = [fd for fd, _ in poll.poll(POLL_MS)]
            if self.started.output_fd in ready and not self.drain():
                poll.unregister(self.started.output_fd)
            if line.fileno() not in ready:
                self._watch((time.perf_counter_ns() - began) / 1e9, limit_s, what)

    def _receive(self, line: socket.socket) -> bytes:
        try:
            data, _, flags, _ = line.recvmsg(MAX_MESSAGE_BYTES, 0, socket.MSG_DONTWAIT)
        except ConnectionError:
            return b""
        if flags & socket.MSG_TRUNC:
            raise forged("sent a message above the size limit")
        return data

    def _watch(self, elapsed_s: float, limit_s: float, what: str) -> None:
        if self.should_stop():
            self.close()
            raise Stopped
        if self._hurries and elapsed_s > URGENT_S and self._pid is not None:
            self._hurry(self._pid, False)
        if elapsed_s > limit_s:
            used = f", with {self.memory_bytes()[0] >> 20} MiB of memory by then" if self._pid is not None else ""
            self.close()
            raise CandidateFailure("timed_out", f"{what} took more than {limit_s:.1f} s: ended{used}")
        if self.started.process.poll() is not None:
            if _has_message(self.started.line):  # it answered and went, between one look and the next
                return
            raise CandidateFailure(*self._death(f"during {what}"))
        if self._pid is None:
            return
        if self.max_threads is not None and (extra := self.extra_words()):
            self.close()
            raise CandidateFailure("flagged", extra)
        private, shared = self.memory_bytes()
        limit = self.spec.limits.memory_bytes
        if private > limit or shared > self.mapped_bytes + SHARED_ALLOWANCE_BYTES:
            self.close()
            raise CandidateFailure("out_of_memory", f"{what} took more than {limit >> 20} MiB of memory: ended")


def _has_message(line: socket.socket) -> bool:
    """Whether something waits to be read, be it the end."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))
