"""Two captures, or two ranges of one, held against each other: what differs, by how much, why; or why nobody can say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from profiling.compare.causes import Cause, causes
from profiling.compare.conclusion import conclusion
from profiling.compare.difference import NOISE, kernels
from profiling.compare.inner import Family, families
from profiling.compare.reasons import Side, on_host_alone, reasons
from profiling.compare.selection import NoSuchRange, Selection, select
from profiling.words import duration

__all__ = ["NOISE", "NoSuchRange", "Side", "compare", "reasons", "select"]

MAX_RANGES = 40


def compare(a: Side, b: Side) -> dict[str, Any]:
    """Plain data with stable keys. ``ratio`` is the time of A over that of B: above 1, B is faster; null when the two
    cannot be compared. Times are ns of one occurrence, under the profiler: a side's figures are medians of its
    occurrences, and ``start_ns`` to ``end_ns`` is the occurrence that takes the median time. ``kernels`` and ``ranges`` hold
    means of one occurrence, so that rows add up. ``on_gpu`` says whether a side saw a GPU at all; without one its figures
    of a GPU mean nothing.
    """
    why_not = reasons(a, b)
    verdict = "not comparable" if why_not else judged(a.selection, b.selection)
    slow, fast = (a, b) if a.selection.time_ns >= b.selection.time_ns else (b, a)
    found: list[Cause] = [] if why_not or verdict == "same" else causes(slow, fast)
    ratio = None if why_not else round(a.selection.time_ns / b.selection.time_ns, 4)
    return {
        "verdict": verdict,
        "comparable": not why_not,
        "reasons": why_not,
        "ratio": ratio,
        "noise": NOISE,
        "conclusion": conclusion(a, b, verdict, ratio, why_not, found),
        "causes": [asdict(cause) for cause in found],
        "a": side(a),
        "b": side(b),
        "kernels": kernels(a.selection, b.selection, not why_not),
        "ranges": ranges(a.selection, b.selection),
        "notes": notes(a, b),
    }


def judged(a: Selection, b: Selection) -> str:
    """``faster`` or ``slower`` (B than A), ``same`` within the noise floor, ``unclear`` where occurrences overlap."""
    if abs(a.time_ns - b.time_ns) <= NOISE * max(a.time_ns, b.time_ns):
        return "same"
    faster = b.time_ns < a.time_ns
    quick, slow = (b, a) if faster else (a, b)
    if (
        max(a.occurrences, b.occurrences) > 1
        and quick.times_ns.max() >= slow.times_ns.min()
        and overlapping(quick, slow)
    ):
        return "unclear"
    return "faster" if faster else "slower"


def overlapping(quick: Selection, slow: Selection) -> bool:
    """Whether more than a quarter of each side's occurrences lies on the wrong side of the other's median."""
    wrong = (quick.times_ns >= slow.time_ns).mean(), (slow.times_ns <= quick.time_ns).mean()
    return bool(min(wrong) > 0.25)


def side(of: Side) -> dict[str, Any]:
    selection = of.selection
    times = selection.times_ns
    return {
        "name": of.name,
        "range": selection.text,
        "ranges": selection.names(),
        "gpus": of.gpus,
        "on_gpu": bool(selection.trace.devices),
        "occurrences": selection.occurrences,
        "time_ns": round(selection.time_ns),
        "shortest_ns": int(times.min()) if len(times) else 0,
        "longest_ns": int(times.max()) if len(times) else 0,
        "busy_ns": round(selection.busy_ns),
        "idle_ns": {cause: round(ns) for cause, ns in selection.idle_ns.items()},
        "kernels": round(selection.median(selection.owner[selection.kernels]), 3),
        "launches": round(selection.launches, 3),
        "start_ns": int(selection.start[selection.typical]) if len(selection.start) else 0,
        "end_ns": int(selection.end[selection.typical]) if len(selection.end) else 0,
        "typical_ns": int(times[selection.typical]) if len(times) else 0,
    }


def ranges(a: Selection, b: Selection) -> list[dict[str, Any]]:
    """NVTX ranges inside the compared ones, by name up to digits: count and time per occurrence of both sides."""
    one, other = families(a), families(b)
    keys = sorted({**one, **other}, key=lambda key: -max(found[key].total_ns for found in (one, other) if key in found))
    return [
        {"name": " / ".join(part for part in key if part), "a": figures(one.get(key)), "b": figures(other.get(key))}
        for key in keys[:MAX_RANGES]
    ]


def figures(family: Family | None) -> dict[str, float] | None:
    return {"count": round(family.count, 3), "total_ns": round(family.total_ns)} if family else None


def notes(a: Side, b: Side) -> list[str]:
    found = ["Times are those under the profiler, which lengthens every launch: without it, steps are shorter"]
    if on_host_alone(a, b):
        found.append("No GPU was seen by either: these are times of the host")
    elif not any(a.gpus) and not any(b.gpus):
        found.append("Neither capture says which GPU it is from: the figures hold only if it is the same")
    for of in (a, b):
        times = of.selection.times_ns
        if len(times) > 1 and times.max() > 2 * times.min():
            found.append(
                f"The ranges of {of.letter} differ among themselves, {duration(times.min())} to {duration(times.max())}: "
                "a narrower text may tell more"
            )
        blocks = int((of.selection.trace.gpu["kind"][of.selection.rows] == 3).sum())
        if blocks:
            found.append(f"{of.letter} holds {blocks:,} whole CUDA graphs: their kernels are not in the table")
    if not a.selection.text and not b.selection.text and a.key != b.key:
        found.append("Whole captures are compared: choose a range if they hold different amounts of work")
    return found
