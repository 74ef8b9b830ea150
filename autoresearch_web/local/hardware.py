"""What this machine can evaluate on: always ``cpu``, and each kind of NVIDIA GPU that the driver reports."""

from __future__ import annotations

import re


def kind_of(gpu_name: str) -> str:
    """A queue name for a GPU: ``NVIDIA H200`` → ``h200``, ``NVIDIA GeForce RTX 4090`` → ``rtx-4090``."""
    short = re.sub(r"\b(NVIDIA|GeForce|Tesla|Corporation)\b", "", gpu_name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", short.lower()).strip("-") or "gpu"


def gpu_names() -> list[str]:
    """Names as the driver gives them, one for each GPU; empty where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def local_kinds() -> list[str]:
    return [*sorted({kind_of(name) for name in gpu_names()}), "cpu"]
