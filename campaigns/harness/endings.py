"""What the end of a process, or of a call in it, means in words that a person can act on."""

from __future__ import annotations

import re
import signal

from .report import Outcome

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning|Failure)\b")


def reason(error: str) -> str:
    """The line of a traceback that names the exception; what an exception says may go on for many lines below it."""
    lines = error.strip().splitlines() or ["no reason given"]
    return next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1])


def printable(text: str) -> str:
    """Text that can be stored: half of a surrogate pair, or a NUL, comes from who would break what reads it."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def signal_words(number: int) -> str:
    words = {
        signal.SIGSEGV: "it touched memory that is not its own, or wrote to an input (SIGSEGV)",
        signal.SIGBUS: "it touched memory that is not there (SIGBUS)",
        signal.SIGABRT: "it aborted (SIGABRT)",
        signal.SIGFPE: "arithmetic fault, for example a division by zero (SIGFPE)",
        signal.SIGILL: "illegal instruction (SIGILL)",
        signal.SIGXCPU: "it used up its processor time (SIGXCPU)",
        signal.SIGXFSZ: "it wrote a larger file than allowed (SIGXFSZ)",
        signal.SIGSYS: "it made a system call of another architecture (SIGSYS)",
        signal.SIGKILL: "it was killed (SIGKILL)",
    }
    return words.get(number, f"signal {number}")  # type: ignore[call-overload]


def outcome_of(status: int | None, text: str) -> Outcome:
    if status == 128 + signal.SIGXCPU:
        return "timed_out"
    if status == 128 + signal.SIGABRT and "bad_alloc" in text:
        return "out_of_memory"
    return "launch_failed"
