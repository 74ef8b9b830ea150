"""What an evaluation says about where it ran."""

from __future__ import annotations

import functools
import platform
import socket
import subprocess
from importlib import metadata

from . import sandbox
from .gpu.devices import Gpu
from .report import Host


@functools.cache
def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith(("model name", "Model"))]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


@functools.cache
def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "kernel": platform.release()}
    for name in ("torch", "triton", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    try:
        done = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, timeout=10, check=False)
        found["g++"] = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        pass
    return found


def host_name() -> str:
    return socket.gethostname()


def this_host(kind: str, gpu: Gpu | None = None, peaks: dict[str, float] | None = None) -> Host:
    """``kind`` is ``cpu``; of a GPU its name and driver are told."""
    return Host(
        name=host_name(),
        kind=gpu.name if gpu else kind,
        processor=processor(),
        versions={**versions(), "driver": gpu.driver} if gpu else versions(),
        sandbox="bubblewrap" if sandbox.available() else "none",
        sandbox_missing=sandbox.missing(),
        peaks=peaks or {},
    )
