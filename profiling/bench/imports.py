"""An import in its child process, as a worker runs it, with time and peak memory."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from profiling import child


@dataclass(frozen=True)
class Measured:
    """Wall and CPU seconds of the child, its peak resident bytes, and the import's report."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    report: dict[str, Any]


def measure(file: Path, store: Path, memory_bytes: int = 4 << 30) -> Measured:
    """Import through ``profiling.child``: the same command, limits and messages as in production."""
    watch = Watch()
    begun = time.perf_counter()
    watch.start()
    try:
        report = child.run_import(file, store, file.name, 900, memory_bytes, lambda percent, phase: True)
    finally:
        watch.stop()
    return Measured(time.perf_counter() - begun, watch.cpu_seconds, watch.peak_bytes, report)


class Watch:
    """Samples the import process's memory as the kernel counts it (VmHWM: the peak, not the moment)."""

    def __init__(self) -> None:
        self.peak_bytes, self.cpu_seconds = 0, 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            for process in psutil.Process().children():
                self._sample(process)

    def _sample(self, process: psutil.Process) -> None:
        try:
            times = process.cpu_times()
            status = Path(f"/proc/{process.pid}/status").read_text()
        except (psutil.Error, OSError):
            return
        peak = next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)
        self.peak_bytes = max(self.peak_bytes, peak)
        self.cpu_seconds = max(self.cpu_seconds, times.user + times.system)
