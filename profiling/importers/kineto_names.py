"""What an event's category means, and what a copy's name says."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """What an event's category makes of it."""

    KERNEL = 0
    COPY = 1
    MEMSET = 2
    CALL = 3
    SYNC = 4
    RANGE = 5
    PYTHON = 6
    GPU_RANGE = 7
    IGNORED = 8


ROLES = {
    "kernel": Role.KERNEL,
    "gpu_memcpy": Role.COPY,
    "memcpy": Role.COPY,
    "gpu_memset": Role.MEMSET,
    "memset": Role.MEMSET,
    "runtime": Role.CALL,
    "driver": Role.CALL,
    "cuda_sync": Role.SYNC,
    "gpu_sync": Role.SYNC,
    "python_function": Role.PYTHON,
    "gpu_user_annotation": Role.GPU_RANGE,
    "trace": Role.IGNORED,
    "overhead": Role.IGNORED,
    "ac2g": Role.IGNORED,
    "fwdbwd": Role.IGNORED,
    "async_cpu_to_gpu": Role.IGNORED,
    "forward_backward": Role.IGNORED,
}
"""Categories of Kineto and, without the prefix, of PyTorch before 1.13. All others are ranges: cpu_op …"""


def role(category: object) -> Role:
    """Calls into a GPU runtime or driver are known by their ending: cuda_runtime, hip_runtime, xpu_driver …"""
    if not isinstance(category, str):
        return Role.RANGE
    lower = category.lower()
    if lower.endswith(("_runtime", "_driver")):
        return Role.CALL
    return ROLES.get(lower, Role.RANGE)


COPY_KINDS = (
    ("htod", (1, "HtoD")),
    ("dtoh", (2, "DtoH")),
    ("dtod", (8, "DtoD")),
    ("htoh", (9, "HtoH")),
    ("ptop", (10, "peer to peer")),
)
MEMORY_KINDS = (("pageable", 0), ("pinned", 1), ("device", 2), ("managed", 4), ("unified", 4))
"""Numbers as in Nsight Systems' ENUM_CUDA_MEM_KIND."""


def copy_kind(name: str) -> tuple[int, str, int, int]:
    """Of ``Memcpy HtoD (Pageable -> Device)``: kind, words, source and destination memory; -1 where it does not say."""
    lower = name.lower()
    number, words = next((found for key, found in COPY_KINDS if key in lower), (-1, ""))
    inside = lower.partition("(")[2].partition(")")[0]
    source, arrow, target = inside.partition("->")

    def memory(text: str) -> int:
        return next((kind for word, kind in MEMORY_KINDS if word in text), -1) if arrow else -1

    return number, words, memory(source), memory(target)
