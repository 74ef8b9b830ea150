"""The table of kernels: what each side runs per occurrence, and what changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from profiling.compare.selection import Selection
from profiling.kernel_names import full_name

NOISE = 0.02
"""Differences below are called "same": two runs of one program differ by as much."""
MAX_ROWS = 1000


def kernels(a: Selection, b: Selection, comparable: bool) -> list[dict[str, Any]]:
    """By name: calls, total, mean and share per occurrence of both sides; largest change first.

    ``change`` is new, gone, less, more or same (total time, ``NOISE``); ``ratio`` is A's total over B's, null unless both
    are there and the sides can be compared.
    """
    one, other = per_name(a), per_name(b)
    rows = [row(name, one.get(name), other.get(name), comparable) for name in {**one, **other}]
    rows.sort(key=lambda r: (-abs(r["b"]["total_ns"] - r["a"]["total_ns"]), r["name"]))
    return rows[:MAX_ROWS]


NONE = {"calls": 0.0, "total_ns": 0.0, "mean_ns": None, "share": 0.0}


def row(name: str, a: dict[str, Any] | None, b: dict[str, Any] | None, comparable: bool) -> dict[str, Any]:
    ratio = a["total_ns"] / b["total_ns"] if comparable and a and b and b["total_ns"] else None
    return {
        "name": name,
        "full_name": (a or b or {}).get("full_name", ""),
        "a": a or NONE,
        "b": b or NONE,
        "change": change(a["total_ns"] if a else None, b["total_ns"] if b else None),
        "ratio": None if ratio is None else round(ratio, 4),
    }


def change(a: float | None, b: float | None) -> str:
    if a is None or b is None:
        return "new" if a is None else "gone"
    if abs(a - b) <= NOISE * max(a, b):
        return "same"
    return "less" if b < a else "more"


def per_name(selection: Selection) -> dict[str, dict[str, Any]]:
    gpu, rows = selection.trace.gpu, selection.kernels
    names, first, inverse, calls = np.unique(
        gpu["name"][rows], return_index=True, return_inverse=True, return_counts=True
    )
    store = selection.trace.store
    total = np.bincount(inverse, (gpu["end"] - gpu["start"])[rows], minlength=len(names))
    everything = max(1.0, float(total.sum()))
    times = max(1, selection.occurrences)
    result: dict[str, dict[str, Any]] = {}
    full = gpu["full_name"][rows[first]].tolist()
    for code, whole, number, took in zip(names.tolist(), full, calls.tolist(), total.tolist(), strict=True):
        name = store.name(code)
        result[name] = {
            "full_name": full_name(name, store.name(whole)),
            "calls": round(number / times, 3),
            "total_ns": round(took / times, 1),
            "mean_ns": round(took / number, 1),
            "share": round(took / everything, 6),
        }
    return result
