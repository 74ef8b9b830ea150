"""What an import may use, and how it says that a file cannot be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[int, str], None]
"""Called with percent (0–100) and what is being done, in words."""


def quoted(head: bytes) -> str:
    """The first bytes of a file for a sentence: as text where they are text, else in hexadecimal."""
    text = head.decode("utf-8", "replace").strip()
    return f"“{text}”" if text.isprintable() and "\ufffd" not in text else f"bytes {head.hex(' ')}"


class Refused(Exception):
    """A file that cannot be imported.

    ``error`` says what is wrong and where, ``hint`` what to do about it. ``needs_export`` is true for a good capture in
    a form that only NVIDIA's own tool can open: the upload is kept and waits for its export.
    """

    def __init__(self, error: str, hint: str, *, format: str = "", needs_export: bool = False) -> None:
        super().__init__(error)
        self.error, self.hint, self.format, self.needs_export = error, hint, format, needs_export


@dataclass
class Limits:
    """Bounds of one import. The memory bound is set by whoever starts the process (RLIMIT_DATA)."""

    seconds: float = 900.0
    max_events: int = 60_000_000
    max_name_chars: int = 4096
    started: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise ``Refused`` when the time is up."""
        if self.expired():
            raise Refused(
                f"the import took longer than its limit of {self.seconds:.0f} s and was stopped",
                "Capture a shorter window (nsys profile --duration or cudaProfilerStart/Stop), or raise "
                "PROFILE_IMPORT_LIMIT_S.",
            )

    def expired(self) -> bool:
        return time.monotonic() - self.started > self.seconds
