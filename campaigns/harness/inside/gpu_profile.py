"""What really runs on the device in one call: kernels, their time, their streams, by torch.profiler (CUPTI)."""

from __future__ import annotations

from typing import Any

MARK = "autoresearch call "


def profile(role: Any, calls: list[str]) -> list[dict[str, Any]]:
    """One call for each slot. By slot: kernels as ``{"kernel", "calls", "total_us", "streams"}``."""
    from torch.profiler import ProfilerActivity, record_function
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for index, name in enumerate(calls):
            with record_function(f"{MARK}{index}"):
                role.call(role.slots[name], role.axes(name))
                role.device.sync()
    events = list(found.profiler.kineto_results.events())
    spans = {}
    for event in events:
        if event.name().startswith(MARK) and "CPU" in str(event.device_type()):
            spans[int(event.name()[len(MARK) :])] = (event.start_ns(), event.start_ns() + event.duration_ns())
    rows: list[dict[str, dict[str, Any]]] = [{} for _ in calls]
    for event in events:
        if "CPU" in str(event.device_type()) or event.name().startswith(MARK):
            continue
        for index, (begin, end) in spans.items():
            if begin <= event.start_ns() <= end:
                add(rows[index], event)
    return [{"slot": name, "kernels": list(row.values())} for name, row in zip(calls, rows, strict=True)]


def add(row: dict[str, dict[str, Any]], event: Any) -> None:
    name = event.name()[:300]
    kernel = row.setdefault(name, {"kernel": name, "calls": 0, "total_us": 0.0, "streams": []})
    kernel["calls"] += 1
    kernel["total_us"] = round(kernel["total_us"] + event.duration_ns() / 1e3, 3)
    if event.device_resource_id() not in kernel["streams"]:
        kernel["streams"].append(event.device_resource_id())
