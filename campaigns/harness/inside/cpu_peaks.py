"""What one core of this host can do at most, measured with a small program of ours: bytes a second by size, operations a second."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from .link import Link
from .serve import describe

TRIES = 7
WINDOW_S = 0.004
SIZES = [1 << power for power in range(14, 28, 2)]
"""16 KiB to 64 MiB for each of the two buffers."""
FMA_STEPS = 1 << 16
FMA_OPERATIONS = 2 * 16 * 16


class Probe:
    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.prepare.restype = None
        self.library.fma.restype = ctypes.c_float
        self.library.read.restype = ctypes.c_float

    def best_s(self, work: Any) -> float:
        """Seconds of one call: the best of some windows of a few milliseconds, by processor time. A busy host shall not
        pass for a slow one: the floor that is made of these figures must be one that nothing honest goes below."""
        began = time.thread_time()
        work()
        repeats = max(1, int(WINDOW_S / max(1e-7, time.thread_time() - began)))
        windows = []
        for _ in range(TRIES):
            began = time.thread_time()
            for _ in range(repeats):
                work()
            windows.append((time.thread_time() - began) / repeats)
        return max(1e-9, min(windows))

    def measure(self) -> dict[str, float]:
        found: dict[str, float] = {}
        self.library.prepare(ctypes.c_size_t(SIZES[-1]))
        for size in SIZES:
            inner = max(1, (1 << 22) // size)  # so that a call from Python is nothing beside it
            argument, times = ctypes.c_size_t(size), ctypes.c_int(inner)
            copied = 2 * size * inner / self.best_s(lambda a=argument, t=times: self.library.copy(a, t))
            read = size * inner / self.best_s(lambda a=argument, t=times: self.library.read(a, t))
            found[f"copy_at_{size}_bytes_per_s"] = copied
            found[f"read_at_{size}_bytes_per_s"] = read
        found["copy_bytes_per_s"] = found[f"copy_at_{SIZES[-1]}_bytes_per_s"]
        found["read_bytes_per_s"] = found[f"read_at_{SIZES[-1]}_bytes_per_s"]
        steps = ctypes.c_int(FMA_STEPS)
        found["float32_flop_per_s"] = FMA_OPERATIONS * FMA_STEPS / self.best_s(lambda: self.library.fma(steps))
        return found


def main(config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    link.reply({"id": config["hello"], "ok": True})
    while True:
        message, _ = link.receive()
        try:
            answer = {"ok": True, "peaks": Probe(config["path"]).measure()}
        except BaseException as error:
            answer = describe(error)
        link.reply({"id": message["id"], **answer})
