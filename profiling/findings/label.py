"""The one word for a capture without counters, and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.events import Kind
from profiling.findings.finding import Facts
from profiling.words import count, duration, percent

MIN_EVENTS = 10


@dataclass(frozen=True)
class Label:
    """``name`` is one of a fixed set; ``title`` a headline; ``reason`` the figures behind it."""

    name: str
    title: str
    reason: str


def label(facts: Facts) -> Label:
    """Where the GPUs' time goes, by the largest part of it.

    Idle time is divided by cause (``profiling.idle``). Whether busy time is compute or memory, no timeline can tell.
    """
    trace = facts.trace
    events = trace.store.meta["events"]
    if not events["kernel"] and not events["graph"]:
        return nothing_ran(facts)
    if events["kernel"] + events["graph"] < MIN_EVENTS:
        number = " and ".join(
            count(events[k], w) for k, w in (("kernel", "kernel"), ("graph", "whole graph")) if events[k]
        )
        return Label(
            "not enough data",
            f"Not enough data: {number} captured",
            f"{number} in {duration(facts.span_ns)} say little about where time goes; capture a few whole steps",
        )
    return by_largest_part(facts)


def nothing_ran(facts: Facts) -> Label:
    meta = facts.trace.store.meta
    if meta["source_rows"].get("CUPTI_ACTIVITY_KIND_KERNEL"):
        why = "all kernel records have impossible times"
    elif meta["events"]["api"]:
        why = "CUDA calls were recorded but no kernel ran between start and stop of the capture"
    elif meta["events"]["copy"]:
        why = "only copies ran"
    else:
        why = "CUDA was not traced: capture with `nsys profile --trace=cuda,nvtx`"
    return Label("no kernels captured", "No kernels captured", f"no kernels captured: {why}")


def by_largest_part(facts: Facts) -> Label:
    trace = facts.trace
    whole = facts.device_time_ns
    communication = trace.exposed_ns(trace.communication)
    transfer = trace.exposed_ns(trace.gpu["kind"] == Kind.COPY)
    parts = {
        "launch-bound": facts.gaps.total_ns("launch") + facts.gaps.total_ns("host"),
        "sync-bound": facts.gaps.total_ns("sync"),
        "transfer-bound": transfer,
        "communication-bound": communication,
        "GPU-busy": facts.busy_ns - communication - transfer,
        "idle": facts.gaps.total_ns("queued") + facts.gaps.total_ns("unknown"),
    }
    name = max(parts, key=lambda part: parts[part])
    share = parts[name] / whole
    busy = percent(facts.busy_ns / whole)
    call = percent(facts.gaps.total_ns("launch") / whole)
    reasons = {
        "launch-bound": f"the GPU waits for the host's next launch {percent(share)} of the time "
        f"({call} inside launch calls, the rest in host code before them); it is busy {busy}",
        "sync-bound": f"the GPU stands idle {percent(share)} of the time after the host waited for it; "
        f"it is busy {busy}",
        "transfer-bound": f"copies run with no kernel beside them {percent(share)} of the time",
        "communication-bound": f"collective kernels run with nothing beside them {percent(share)} of the time",
        "GPU-busy": f"kernels run {percent(share)} of the time; Nsight Compute is needed to split compute from memory",
        "idle": f"the GPU is idle {percent(share)} of the time with work already queued or without a recorded launch",
    }
    titles = {
        "GPU-busy": f"GPU-busy: kernels run {percent(share)} of the time",
        "idle": f"Idle: the GPU is busy {busy} of the time",
        "transfer-bound": f"Transfer-bound: copies alone take {percent(share)} of the time",
        "communication-bound": f"Communication-bound: it stands exposed {percent(share)} of the time",
    }
    plural = "GPUs are" if len(trace.devices) > 1 else "GPU is"
    headline = f"{name[0].upper()}{name[1:]}: the {plural} busy {busy} of the time"
    return Label(name, titles.get(name, headline), reasons[name])
