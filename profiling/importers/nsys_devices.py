"""Which GPU, process and thread the events of an Nsight Systems export belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from profiling import orders
from profiling.events import Capture, clean
from profiling.importers.nsys_sql import Export

GPU_FACTS = {
    "smCount": "sm_count",
    "memoryBandwidth": "memory_bandwidth_bytes_per_s",
    "totalMemory": "memory_bytes",
    "clockRate": "clock_hz",
    "l2CacheSize": "l2_cache_bytes",
    "maxWarpsPerSm": "max_warps_per_sm",
    "maxRegistersPerSm": "registers_per_sm",
    "maxShmemPerSm": "shared_bytes_per_sm",
    "maxBlocksPerSm": "blocks_per_sm",
}


def pid_of(global_id: int) -> int:
    """The operating system's process id inside a globalPid or globalTid."""
    return (global_id >> 24) & 0xFFFFFF


def name_devices(export: Export, capture: Capture) -> None:
    """Turn each process's own device numbers into GPUs and name them, where the capture says what they are.

    Two processes may both call their GPU "0" (CUDA_VISIBLE_DEVICES): TARGET_INFO_CUDA_DEVICE tells them apart. A
    capture without TARGET_INFO_GPU names no GPU, and none is assumed.
    """
    device, process = capture.gpu["device"], capture.gpu["process"]
    mapping = {
        (integer(pid), integer(cuda)): integer(gpu)
        for pid, cuda, gpu in export.texts("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
    }
    mapped = device.copy()
    owners, owner_of = orders.codes(process)
    numbers, number_of = orders.codes(device)
    pairs = owner_of * len(numbers) + number_of
    for pair in np.flatnonzero(np.bincount(pairs)).tolist():
        owner, number = int(owners[pair // len(numbers)]), int(numbers[pair % len(numbers)])
        if (gpu := mapping.get((pid_of(owner), number))) is not None:
            mapped[pairs == pair] = gpu
    capture.gpu["device"] = mapped
    used = set(np.unique(mapped).tolist())
    for gpu_id, name in export.texts("TARGET_INFO_GPU", ("id", "name")):
        if integer(gpu_id) in used and name:
            capture.device_names[integer(gpu_id)] = clean(name)[:80]
    read_facts(export, capture)


def read_facts(export: Export, capture: Capture) -> None:
    present = [c for c in GPU_FACTS if c in export.tables.get("TARGET_INFO_GPU", set())]
    for gpu_id, *values in export.texts("TARGET_INFO_GPU", ("id", *present)):
        if integer(gpu_id) in capture.device_names:
            facts = {GPU_FACTS[c]: v for c, v in zip(present, values, strict=True) if isinstance(v, int) and v > 0}
            capture.device_facts[integer(gpu_id)] = facts


def name_owners(export: Export, capture: Capture) -> None:
    """Names of processes and threads that own events: the program's base name, without path or arguments."""
    owners = (orders.codes(table["thread"])[0] for table in (capture.api, capture.nvtx, capture.os))
    threads = np.unique(np.concatenate(list(owners))).tolist()
    capture.thread_process = {thread: thread & ~0xFFFFFF for thread in threads}
    processes = set(capture.thread_process.values()) | set(orders.codes(capture.gpu["process"])[0].tolist())
    names = {integer(gid): base_name(name) for gid, name in export.texts("PROCESSES", ("globalPid", "name"))}
    capture.process_labels = {p: f"{names.get(p) or 'process'} {pid_of(p)}" for p in processes}
    labels = thread_names(export, threads)
    capture.thread_labels = {t: f"{labels.get(t) or 'thread'} {t & 0xFFFFFF}" for t in threads}


def thread_names(export: Export, threads: Sequence[int]) -> dict[int, str]:
    wanted = set(threads)
    ids = {
        integer(thread): integer(name)
        for thread, name in export.texts("ThreadNames", ("globalTid", "nameId"))
        if integer(thread) in wanted
    }
    if not ids:
        return {}
    listed = ",".join(str(i) for i in sorted(set(ids.values()))[:5000])
    texts = {integer(i): base_name(v) for i, v in export.texts("StringIds", ("id", "value"), f"WHERE id IN ({listed})")}
    return {thread: texts.get(name, "") for thread, name in ids.items()}


def base_name(value: object) -> str:
    first = re.split(r"\s", clean(value).strip(), maxsplit=1)[0]
    return first.rstrip("/").rsplit("/", 1)[-1][:40]


def integer(value: object) -> int:
    return value if isinstance(value, int) else -1
