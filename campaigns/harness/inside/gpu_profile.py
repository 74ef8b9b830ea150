"""What really runs on the device in one call: kernels, their time, their streams, by torch.profiler (CUPTI)."""

from __future__ import annotations

import time
from typing import Any

MARK = "autoresearch call "
PAUSE_S = 0.004
"""Before each call. The device's clock, as CUPTI converts it, was seen to be off by more than a call of 30 µs takes."""
MOST_KERNELS = 96
"""Told by name, those that take most of the time: an answer is a message of limited length. The others are one row together."""


def profile(role: Any, calls: list[str]) -> dict[str, Any]:
    """One call for each slot, in their order, as ``packed`` has them."""
    from torch.profiler import ProfilerActivity, record_function
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for index, name in enumerate(calls):
            time.sleep(PAUSE_S)
            with record_function(f"{MARK}{index}"):
                role.call(role.slots[name], role.axes(name))
                role.device.sync()
    events = list(found.profiler.kineto_results.events())
    began = {int(event.name()[len(MARK) :]): event.start_ns() for event in events if is_mark(event)}
    rows: list[dict[str, dict[str, Any]]] = [{} for _ in calls]
    for event in events:
        if "CPU" not in str(event.device_type()) and not event.name().startswith(MARK):
            add(rows[call_of(event.start_ns(), began)], event)
    return packed(rows)


def is_mark(event: Any) -> bool:
    return event.name().startswith(MARK) and "CPU" in str(event.device_type())


def call_of(start_ns: int, began: dict[int, int]) -> int:
    """The call that something on the device belongs to: the last that began before it, by clocks that may disagree by half
    the pause between calls. Each call is over before the next begins."""
    slack_ns = int(PAUSE_S / 2 * 1e9)
    return max((index for index, begin_ns in began.items() if begin_ns - slack_ns <= start_ns), default=0)


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
