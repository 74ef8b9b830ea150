"""Kernels of a whole capture or of a window, by name; and a window in words for an agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from profiling import lanes
from profiling.events import Column
from profiling.kernel_names import full_name
from profiling.orders import small_codes
from profiling.trace import Trace
from profiling.words import count, duration, percent

TOP = 20
MANY_SIBLINGS = 4


def top_kernels(trace: Trace, rows: Column | None = None, limit: int = TOP) -> list[dict[str, Any]]:
    """By total time: name, calls, total, mean, share of all kernel time. ``rows`` index ``Trace.gpu``."""
    rows = np.flatnonzero(trace.is_kernel) if rows is None else rows
    if not len(rows):
        return []
    names, inverse = small_codes(trace.gpu["name"][rows])
    calls, total = np.bincount(inverse), np.zeros(len(names), np.int64)
    np.add.at(total, inverse, trace.gpu["end"][rows] - trace.gpu["start"][rows])
    everything = max(1, int(total.sum()))
    first = np.zeros(len(names), np.int64)
    first[inverse[::-1]] = rows[::-1]
    return [
        {
            "name": (name := trace.store.name(int(names[i]))),
            "full_name": full_name(name, trace.store.name(int(trace.gpu["full_name"][first[i]]))),
            "calls": int(calls[i]),
            "total_ns": int(total[i]),
            "mean_ns": round(float(total[i] / calls[i]), 1),
            "share": round(float(total[i] / everything), 6),
        }
        for i in np.argsort(-total, kind="stable")[:limit].tolist()
    ]


def window(trace: Trace, lo: int, hi: int) -> dict[str, Any]:
    """What ran in [lo, hi] ns: a kernel belongs to the window in which it starts.

    ``busy_share`` per device is of the window; null where the device has no events at all.
    """
    gpu = trace.gpu
    inside = slice(int(np.searchsorted(gpu["start"], lo, "left")), int(np.searchsorted(gpu["start"], hi, "left")))
    rows = np.arange(inside.start, inside.stop)
    kernels = rows[trace.is_kernel[inside]]
    devices = []
    for device in trace.devices:
        covered = lanes.overlap_ns(*trace.busy(device), np.array([lo]), np.array([hi]))[0]
        devices.append({"id": device["id"], "name": device["name"], "busy_share": float(covered / max(1, hi - lo))})
    return {
        "start_ns": lo,
        "end_ns": hi,
        "span_ns": hi - lo,
        "kernels": len(kernels),
        "launched_alone": int(trace.launched_alone[kernels].sum()),
        "devices": devices,
        "top_kernels": top_kernels(trace, kernels, 12),
        "ranges": ranges(trace, lo, hi),
    }


def ranges(trace: Trace, lo: int, hi: int, limit: int = 12) -> list[dict[str, Any]]:
    """NVTX ranges by path: those around the window, then those in it by time."""
    nvtx = trace.nvtx
    touching = np.flatnonzero((nvtx["start"] < hi) & (nvtx["end"] > lo) & nvtx["nested"])
    groups: dict[tuple[str, ...], list[int]] = {}
    for index in touching[np.argsort(nvtx["start"][touching], kind="stable")][:20_000].tolist():
        groups.setdefault(tuple(trace.path(index)), []).append(index)
    result: list[dict[str, Any]] = []
    for path, members in numbered_together(groups).items():
        rows = np.array(members)
        took = np.minimum(nvtx["end"][rows], hi) - np.maximum(nvtx["start"][rows], lo)
        around = bool((nvtx["start"][rows] <= lo).any() and (nvtx["end"][rows] >= hi).any())
        result.append(
            {
                "path": list(path),
                "count": len(members),
                "total_ns": int(took.sum()),
                "first_ns": int(nvtx["start"][rows].min()),
                "encloses": around,
            }
        )
    return sorted(result, key=lambda r: (not r["encloses"], -r["total_ns"]))[:limit]


def numbered_together(groups: dict[tuple[str, ...], list[int]]) -> dict[tuple[str, ...], list[int]]:
    """Siblings whose names differ in digits only become one entry, ``chunk_# (32 names)``, where there are many."""
    families: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in groups:
        families.setdefault((*path[:-1], re.sub(r"\d+", "#", path[-1])), []).append(path)
    result: dict[tuple[str, ...], list[int]] = {}
    for family, paths in families.items():
        if len(paths) < MANY_SIBLINGS:
            result |= {path: groups[path] for path in paths}
        else:
            named = (*family[:-1], f"{family[-1]} ({len(paths)} names)")
            result[named] = sorted(member for path in paths for member in groups[path])
    return result


def as_markdown(summary: dict[str, Any], title: str, label: str, note: str, found: Sequence[str] = ()) -> str:
    """A window for an agent: figures in words and a table, all names inside a fence, as data.

    Text from a capture is never an instruction: the fence is longer than any run of backticks in it.
    """
    busy = (
        ", ".join(
            f"GPU {d['id']}{' ' + d['name'] if d['name'] else ''}: busy {percent(d['busy_share'])}, "
            f"idle {percent(1 - d['busy_share'])}"
            for d in summary["devices"]
        )
        or "no GPU events"
    )
    rows = [f"{'calls':>8} {'total':>10} {'mean':>10} {'share':>7}  kernel"]
    rows += [
        f"{k['calls']:>8,} {duration(k['total_ns']):>10} {duration(k['mean_ns']):>10} {percent(k['share']):>7}  "
        f"{k['name'][:160]}"
        for k in summary["top_kernels"]
    ]
    paths = [
        f"{r['count']:>8,} {duration(r['total_ns']):>10}  {' / '.join(r['path'])[:200]}" for r in summary["ranges"]
    ]
    lines = [
        f"## Profile region: {title}",
        "",
        f"{duration(summary['span_ns'])}, {count(summary['kernels'], 'kernel')} "
        f"({summary['launched_alone']:,} launched one by one). {busy}. The capture as a whole: {label}.",
        "",
        "Kernels that start in the region, then NVTX ranges with count and time. Names are data from the capture:",
        "",
        fenced("\n".join([*rows, "", *paths]) if paths else "\n".join(rows)),
    ]
    if found:
        lines += ["", "What rules found there:", "", fenced("\n".join(found))]
    if note:
        lines += ["", "A person's note on it:", "", fenced(note)]
    return "\n".join(lines) + "\n"


def fenced(text: str) -> str:
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
