"""The GPUs of this host, as NVML names them, and the lock that gives one evaluation one GPU."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import glob
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from billiard.process import current_process

from .. import cores
from ..errors import Infrastructure, Stopped

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``device`` is ``cuda``; ``cpu`` only where the tests rehearse the conversation without one."""

    index: int
    name: str
    uuid: str
    driver: str
    capability: tuple[int, int]
    memory_bytes: int
    device: str = "cuda"
    memory_bytes_per_s: float = 0.0
    """What its memory could move at its highest clock: two transfers a clock on every line of the bus. 0: NVML does not say."""

    @property
    def identity(self) -> str:
        """What its measured peaks belong to."""
        return f"{self.name} {self.uuid} driver {self.driver}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its device files, and those of no other GPU."""
        if self.device != "cuda":
            return ()
        own = [*CONTROL_NODES, f"/dev/nvidia{self.index}", *sorted(glob.glob("/dev/nvidia-caps/*"))]
        return tuple(path for path in own if os.path.exists(path))

    @property
    def architecture(self) -> str:
        """As nvcc wants it: from Hopper on with the features of that chip alone (wgmma, setmaxnreg)."""
        major, minor = self.capability
        return f"{major}{minor}{'a' if major >= 9 else ''}"


def visible() -> list[Gpu]:
    """The GPUs that this process may use: ``CUDA_VISIBLE_DEVICES`` counts, as a list of numbers or UUIDs."""
    found = _all()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return list(found)
    names = [name.strip() for name in chosen.split(",") if name.strip()]
    return [gpu for name in names for at, gpu in enumerate(found) if name == str(at) or gpu.uuid.startswith(name)]


def kind_of(gpu_name: str) -> str:
    """A queue name for a GPU: ``NVIDIA H200`` → ``h200``, ``NVIDIA GeForce RTX 4090`` → ``rtx-4090``."""
    short = re.sub(r"\b(NVIDIA|GeForce|Tesla|Corporation)\b", "", gpu_name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", short.lower()).strip("-") or "gpu"


def by_kind() -> dict[str, list[Gpu]]:
    """The visible GPUs by the kind that names their queue, kinds in alphabetical order."""
    found: dict[str, list[Gpu]] = {}
    for gpu in sorted(visible(), key=lambda gpu: kind_of(gpu.name)):
        found.setdefault(kind_of(gpu.name), []).append(gpu)
    return found


@functools.cache
def _all() -> tuple[Gpu, ...]:
    if not os.path.exists("/dev/nvidiactl"):
        return ()
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    driver = _text(pynvml.nvmlSystemGetDriverVersion())
    found = []
    for number in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        found.append(
            Gpu(
                index=int(pynvml.nvmlDeviceGetMinorNumber(handle)),
                name=_text(pynvml.nvmlDeviceGetName(handle)),
                uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                driver=driver,
                capability=(int(major), int(minor)),
                memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                memory_bytes_per_s=_memory_bytes_per_s(pynvml, handle),
            )
        )
    return tuple(found)


def _memory_bytes_per_s(pynvml: Any, handle: Any) -> float:
    try:
        clock_hz = 1e6 * pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)
        return float(2 * clock_hz * pynvml.nvmlDeviceGetMemoryBusWidth(handle) / 8)
    except (pynvml.NVMLError, AttributeError):
        return 0.0


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def nvcc() -> str | None:
    """The CUDA compiler: on PATH, below ``CUDA_HOME``, or where the toolkit is usually put."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    paths = [shutil.which("nvcc"), *(os.path.join(home, "bin", "nvcc") for home in homes if home)]
    return next((os.path.realpath(path) for path in paths if path and os.access(path, os.X_OK)), None)


def driver_folders() -> tuple[str, ...]:
    """Where the driver's libraries lie beside the linker's own folders."""
    named = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    known = ["/usr/local/nvidia", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"]
    holds = [
        f for f in [*named, *known] if os.path.isdir(f) and ("nvidia" in f or glob.glob(os.path.join(f, "libcuda.so*")))
    ]
    return tuple(dict.fromkeys(holds))


def cores_of(gpu: Gpu) -> set[int]:
    """Its share of the cores, by all GPUs of the host: whoever uses the others is not asked."""
    host = _all()
    return cores.share(host.index(gpu), len(host)) if gpu in host else cores.share(0, 1)


@contextlib.contextmanager
def reserved(should_stop: Callable[[], bool], limit_s: float) -> Iterator[Gpu]:
    """A GPU of one's own while the block runs, and a share of the cores: a lock file keeps evaluations of other processes waiting.

    Each process of a worker's pool looks at another GPU first, so that what it keeps warm stays on one of them.
    """
    gpus = visible()
    if not gpus:
        raise Infrastructure("no NVIDIA GPU is visible here: the driver, /dev/nvidia* and nvidia-ml-py are needed")
    first = (getattr(current_process(), "index", None) or 0) % len(gpus)
    until = time.monotonic() + limit_s
    while True:
        for gpu in gpus[first:] + gpus[:first]:
            fd = _locked(gpu)
            if fd is not None:
                try:
                    with cores.kept_to(cores_of(gpu)):
                        yield gpu
                finally:
                    os.close(fd)
                return
        if should_stop():
            raise Stopped
        if time.monotonic() > until:
            raise Infrastructure("every GPU here is in use by other evaluations: try again later")
        time.sleep(0.05)


def _locked(gpu: Gpu) -> int | None:
    path = os.path.join(tempfile.gettempdir(), f"autoresearch-{gpu.uuid}.lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
