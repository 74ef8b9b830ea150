"""Processes started ahead of time: each in a fresh sandbox, torch and triton imported, a context on the GPU if there is room.

A candidate gets one of them, and nobody after it: a fault on the GPU ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import cores
from ..errors import CandidateFailure, SandboxError
from ..sandbox import MIB, Limits, Spec
from .channel import GpuChannel
from .devices import Gpu, driver_folders

LIMITS = Limits(
    memory_bytes=32768 * MIB, processes=160, file_bytes=1024 * MIB, tmp_bytes=1024 * MIB, cpu_s=7 * 24 * 3600
)
START_LIMIT_S = 120.0
BECOME_LIMIT_S = 120.0
FIRST, MOST_KEPT, MEMORY_EACH_BYTES = 8, 18, 4 << 30
"""How many are started at first, how many wait at most, and for how much of the host's memory there is one of them.

An evaluation takes eight for correctness, engagement and timing, and three to confirm a keep; each is 8 s of importing, and
those still importing stand still while others are timed. With ten, evaluations that followed each other waited 3 s for theirs."""


def kept() -> int:
    """How many wait on this host: half a gigabyte each, of an eighth of the memory."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(4, min(MOST_KEPT, cores.count(), memory_bytes // MEMORY_EACH_BYTES))


CONTEXT_BYTES, CONTEXTS_SHARE = 768 << 20, 1 / 8
"""Of the GPU's memory: a context, torch's handles and what empties the second-level cache; all that wait may hold that share.

Eight processes that open theirs at once take 1.4 s, and the driver opens one after the other."""


SYSTEM_PATHS = ("/sys/bus/pci", "/sys/devices/system/node", "/sbin")
"""What the driver reads to know its GPU, and what Triton asks where the driver's library is."""


def spec(gpu: Gpu, opened: bool = False) -> Spec:
    """The sandbox of every process on the GPU: this GPU's device files, the driver, a C compiler for Triton's stubs.

    ``opened``: it opens the GPU while it waits.
    """
    environment = {"TRITON_CACHE_DIR": "/tmp/triton", "CUDA_CACHE_PATH": "/tmp/cuda", "CUDA_MODULE_LOADING": "LAZY"}
    if folders := driver_folders():
        environment["LD_LIBRARY_PATH"] = ":".join(folders)
        if holding := next((f for f in folders if os.path.exists(os.path.join(f, "libcuda.so.1"))), None):
            environment["TRITON_LIBCUDA_PATH"] = holding
    if gpu.device == "cuda":
        environment["CUDA_VISIBLE_DEVICES"] = gpu.uuid
    else:
        environment["TRITON_INTERPRET"] = "1"
    return Spec(
        role="gpu_host",
        limits=LIMITS,
        packages=True,
        compiler=True,
        config={"device": gpu.device, "capability": gpu.capability, "opened": opened},
        devices=gpu.nodes,
        binds=(*driver_folders(), *SYSTEM_PATHS) if gpu.device == "cuda" else (),
        environment=environment,
    )


class Spares:
    """A few processes that wait for one GPU. ``take`` hands one out and starts another."""

    def __init__(self, gpu: Gpu, count: int | None = None) -> None:
        self.gpu, self.kept = gpu, kept() if count is None else count
        self.opened = self.kept * CONTEXT_BYTES <= gpu.memory_bytes * CONTEXTS_SHARE
        self.waiting: list[GpuChannel] = []
        self.lock = threading.Lock()
        """Stacks take theirs from several threads."""

    def fill(self, count: int = FIRST) -> None:
        """Start some, to that many; the rest come as these are taken, for all at once would hinder each other."""
        while len(self.waiting) < min(self.kept, count):
            self.waiting.append(self._start())

    def _start(self) -> GpuChannel:
        return GpuChannel(spec(self.gpu, self.opened))

    def take(self, should_stop: Callable[[], bool], limit_s: float = START_LIMIT_S) -> GpuChannel:
        """The one that has waited longest, ready. Two start in its place at once, up to what is kept: whoever takes several in
        turn would else wait for the start of each."""
        with self.lock:
            self._close_exited()
            channel = self.waiting.pop(0) if self.waiting else self._start()
            self.fill(len(self.waiting) + 2)
        channel.should_stop = should_stop
        try:
            channel.wait_ready(limit_s)
        except BaseException:
            channel.close()
            raise
        return channel

    def _close_exited(self) -> None:
        """Give back the descriptors of those that ended while they waited."""
        exited = [channel for channel in self.waiting if channel.exited()]
        self.waiting = [channel for channel in self.waiting if channel not in exited]
        for channel in exited:
            channel.close()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Those that are still importing wait while the block runs: nothing but the timed process keeps the host busy.

        One that has ended is no failure of the candidate that is timed: ``take`` passes over it.
        """
        stopped = list(self.waiting)
        for channel in stopped:
            with contextlib.suppress(CandidateFailure, SandboxError):
                channel.freeze()
        try:
            yield
        finally:
            for channel in stopped:
                channel.thaw()

    def close(self) -> None:
        for channel in self.waiting:
            channel.close()
        self.waiting = []


def become(channel: GpuChannel, role: str, files: Mapping[str, bytes], **more: Any) -> str:
    """Tell a waiting process what it is from now on; the nonce of its answer."""
    fd = os.memfd_create("files", os.MFD_CLOEXEC)
    places, first = {}, 0
    try:
        for path, data in files.items():
            os.pwrite(fd, data, first)
            places[path] = [first, len(data)]
            first += len(data)
        assert len(json.dumps(places)) < 1 << 15
        return channel.send("become", [fd], role=role, files=places, **more)
    finally:
        os.close(fd)
