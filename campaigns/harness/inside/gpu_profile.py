"""What really runs on the device in one call: kernels, their time, their streams, by torch.profiler (CUPTI)."""

from __future__ import annotations

import time
from typing import Any

MARK = "autoresearch call "
PAUSE_S, SLACK_NS = 0.004, 2_000_000
"""Before each call, and by how much the host's times of calls and of calls into the driver may disagree."""
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
    return packed(by_call(list(found.profiler.kineto_results.events()), len(calls)))


def by_call(events: list[Any], calls: int) -> list[dict[str, dict[str, Any]]]:
    """What ran on the device, by the call that launched it: nothing is left out.

    Calls follow each other and each is over before the next begins, so the numbers that CUPTI gives to calls into the driver
    tell them apart. Times do not: those of the device, as CUPTI converts them, were seen to be off by over 2 ms.
    """
    began_ns = {int(event.name()[len(MARK) :]): event.start_ns() for event in events if is_mark(event)}
    first: dict[int, int] = {}
    for event in events:
        if on_host(event) and event.name().startswith(("cu", "hip")):
            index, number = last_begun(began_ns, event.start_ns() + SLACK_NS), event.correlation_id()
            first[index] = min(number, first.get(index, number))
    rows: list[dict[str, dict[str, Any]]] = [{} for _ in range(calls)]
    for event in events:
        if not on_host(event) and not event.name().startswith(MARK):
            add(rows[last_begun(first, event.correlation_id())], event)
    return rows


def on_host(event: Any) -> bool:
    return "CPU" in str(event.device_type())


def is_mark(event: Any) -> bool:
    return event.name().startswith(MARK) and on_host(event)


def last_begun(first: dict[int, int], at: int) -> int:
    """The last call that began at or before that; the first one where none did."""
    return max((index for index, begin in first.items() if begin <= at), default=0)


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
