"""What really runs on the device in one call: kernels, their time, their streams, by torch.profiler (CUPTI)."""

from __future__ import annotations

from typing import Any

MARK = "autoresearch call "
MOST_KERNELS = 96
"""Told by name, those that take most of the time: an answer is a message of limited length. The others are one row together."""


def profile(role: Any, calls: list[str]) -> dict[str, Any]:
    """One call for each slot, in their order, as ``packed`` has them."""
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
    return packed(rows)


def packed(rows: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """``{"names": [kernel …], "calls": [[[name's place, calls, total_us, streams] …] …]}``: one list a call."""
    total_us: dict[str, float] = {}
    for row in rows:
        for name, kernel in row.items():
            total_us[name] = total_us.get(name, 0.0) + kernel["total_us"]
    names = sorted(total_us, key=lambda name: -total_us[name])
    if rest := names[MOST_KERNELS:]:
        names[MOST_KERNELS:] = [f"{len(rest)} further kernels"]
    place = {name: i for i, name in enumerate(names)} | dict.fromkeys(rest, len(names) - 1)
    calls = []
    for row in rows:
        found: dict[int, list[Any]] = {}
        for name, kernel in row.items():
            one = found.setdefault(place[name], [place[name], 0, 0.0, []])
            one[1], one[2] = one[1] + kernel["calls"], round(one[2] + kernel["total_us"], 3)
            one[3] = sorted({*one[3], *kernel["streams"]})
        calls.append(list(found.values()))
    return {"names": names, "calls": calls}


def add(row: dict[str, dict[str, Any]], event: Any) -> None:
    name = event.name()[:300]
    kernel = row.setdefault(name, {"kernel": name, "calls": 0, "total_us": 0.0, "streams": []})
    kernel["calls"] += 1
    kernel["total_us"] = round(kernel["total_us"] + event.duration_ns() / 1e3, 3)
    if event.device_resource_id() not in kernel["streams"]:
        kernel["streams"].append(event.device_resource_id())
