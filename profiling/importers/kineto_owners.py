"""Which process, thread and GPU the events of a trace belong to."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from profiling.events import Capture, clean
from profiling.importers.kineto_events import Event

GPU_FACTS = {
    "numSms": "sm_count",
    "totalGlobalMem": "memory_bytes",
    "maxThreadsPerMultiprocessor": "max_threads_per_sm",
    "regsPerMultiprocessor": "registers_per_sm",
    "sharedMemPerMultiprocessor": "shared_bytes_per_sm",
    "warpSize": "warp_size",
}


class Owners:
    """Small ids for the pids and tids of a trace, which may be numbers or words."""

    def __init__(self) -> None:
        self.processes: dict[Any, int] = {}
        self.threads: dict[tuple[Any, Any], int] = {}
        self.process_of: dict[int, int] = {}
        self.process_names: dict[int, str] = {}
        self.thread_names: dict[int, str] = {}

    def process(self, pid: Any) -> int:
        pid = plain(pid)
        found = self.processes.get(pid)
        if found is None:
            found = self.processes[pid] = len(self.processes) + 1
        return found

    def thread(self, pid: Any, tid: Any) -> int:
        try:
            return self.threads[(pid, tid)]
        except (KeyError, TypeError):
            key = (plain(pid), plain(tid))
        found = self.threads.get(key)
        if found is None:
            found = self.threads[key] = len(self.threads) + 1
            self.process_of[found] = self.process(pid)
        return found

    def describe(self, event: Event, args: dict[str, Any]) -> None:
        """Take a process_name or thread_name."""
        name = base_name(args.get("name", ""))
        if event.name == "process_name" and name:
            self.process_names[self.process(event.pid)] = name
        elif event.name == "thread_name" and name:
            self.thread_names[self.thread(event.pid, event.tid)] = name


def plain(value: Any) -> Any:
    """Something to key on: numbers and strings as they are, anything else by its text."""
    return value if isinstance(value, int | str) or value is None else clean(value)


def base_name(value: object) -> str:
    """``thread 449 (python3)`` → ``python3``; paths lose their folders, command lines their arguments."""
    text = clean(value).strip()
    inside = re.fullmatch(r"thread -?\d+ \((.*)\)", text)
    first = re.split(r"\s", (inside.group(1) if inside else text).strip(), maxsplit=1)[0]
    return first.rstrip("/").rsplit("/", 1)[-1][:40]


def name_owners(capture: Capture, owners: Owners, facts: dict[str, Any]) -> None:
    used = np.unique(np.concatenate([capture.api["thread"], capture.nvtx["thread"]])).tolist()
    by_thread = {number: key for key, number in owners.threads.items()}
    by_process = {number: pid for pid, number in owners.processes.items()}
    capture.thread_process = {thread: owners.process_of[thread] for thread in used}
    for thread in used:
        tid = str(by_thread[thread][1])[:40]
        name = owners.thread_names.get(thread, "") or "thread"
        capture.thread_labels[thread] = name if tid in name else f"{name} {tid}"
    launching = {owners.process_of[thread] for thread in np.unique(capture.api["thread"]).tolist()}
    for process in launching or set(capture.thread_process.values()):
        pid = str(by_process[process])[:40]
        capture.process_labels[process] = f"{owners.process_names.get(process) or 'process'} {pid}"
    capture.domain_names = {1: "Python", 2: "on the GPU"}
    capture.range_word = "Operators"
    hip = any(text.startswith("hip") for text in capture.names.texts)
    capture.api_word = "HIP API" if hip else "CUDA API"
    version = facts.get("schemaVersion")
    capture.schema = f"Kineto {clean(version)[:20]}" if version is not None else "Chrome trace"
    capture.producer = "torch.profiler" if version is not None else "Trace Event Format"
    name_devices(capture, facts.get("deviceProperties"))


def name_devices(capture: Capture, listed: Any) -> None:
    """Name GPUs that the trace lists. One that is not (ROCm numbers nodes, not GPUs) gets the name that all have."""
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    names = {row.get("id"): clean(row.get("name", ""))[:80] for row in rows if row.get("name")}
    common = next(iter(set(names.values()))) if len(set(names.values())) == 1 else ""
    for device in np.unique(capture.gpu["device"]).tolist():
        if name := names.get(device, common):
            capture.device_names[device] = name
        row = next((row for row in rows if row.get("id") == device), rows[0] if common and rows else {})
        kept = {ours: row[theirs] for theirs, ours in GPU_FACTS.items() if isinstance(row.get(theirs), int)}
        capture.device_facts[device] = kept
