"""Why two selections cannot be compared. A ratio between things that differ in kind is worse than none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from profiling.compare.selection import Selection, outer_families
from profiling.events import NO_TIMELINE
from profiling.words import count

DOMINANT_SHARE = 0.3
"""A family of outermost ranges that fills this much of a capture says what its work is."""
TRACERS = {"nsys-sqlite": "Nsight Systems"}


@dataclass(frozen=True)
class Side:
    """One of the two: its letter, its selection, and facts of its profile (``profiling.report``)."""

    letter: str
    selection: Selection
    name: str
    key: str
    """Content hash, or path: equal for the same capture."""

    @property
    def meta(self) -> dict[str, Any]:
        return self.selection.trace.store.meta

    @property
    def gpus(self) -> list[str]:
        used = set(np.unique(self.selection.trace.gpu["device"][self.selection.rows]).tolist())
        return sorted(d["name"] for d in self.meta["devices"] if d["id"] in used)


def reasons(a: Side, b: Side) -> list[str]:
    """Sentences; none when the two can be compared."""
    if on_host_alone(a, b):
        return tracers(a, b)
    found = [text for side in (a, b) for text in empty(side)]
    if found:
        return found
    return [*gpus(a, b), *tracers(a, b), *work(a, b)]


def on_host_alone(a: Side, b: Side) -> bool:
    """Whether both are the same ranges of captures that saw no GPU at all: then their times on the host are what counts."""
    sides = (a.selection, b.selection)
    chosen = a.selection.text == b.selection.text and all(len(s.ranges) and s.time_ns > 0 for s in sides)
    return chosen and not any(s.trace.devices for s in sides)


def empty(side: Side) -> list[str]:
    if what := NO_TIMELINE.get(side.meta["format"]):
        return [f"{side.letter} is {what}: it has kernels, but no timeline to compare"]
    if side.selection.time_ns <= 0:
        return [f"{side.letter} is empty: what was selected has no length"]
    if len(side.selection.kernels):
        return []
    blocks = side.selection.trace.gpu["kind"][side.selection.rows]
    if len(blocks) and (blocks == 3).any():
        return []
    return [f"{side.letter} is empty: no kernel runs in it"]


def gpus(a: Side, b: Side) -> list[str]:
    one, other = a.gpus, b.gpus
    if len(one) != len(other):
        return [f"another number of GPUs: {count(len(one), 'GPU')} in A, {len(other)} in B"]
    if all(one) != all(other):
        unknown = a if not all(one) else b
        return [f"the GPU of {unknown.letter} is not recorded in its capture: nobody can say that it is the same"]
    if one != other:
        return [f"another GPU: {', '.join(one)} in A, {', '.join(other)} in B"]
    return []


def tracers(a: Side, b: Side) -> list[str]:
    """Profilers add a time of their own to each launch: steps seen by two of them are not of one scale."""
    words = [TRACERS.get(side.meta["format"], "torch.profiler or another writer of JSON traces") for side in (a, b)]
    if words[0] == words[1]:
        return []
    return [f"another profiler: {words[0]} for A, {words[1]} for B, and each slows launches down in its own way"]


def work(a: Side, b: Side) -> list[str]:
    """Signs of another workload. Ranges that a person chose for each side are taken at their word."""
    if a.key == b.key and a.selection.text == b.selection.text:
        return []
    if a.selection.text and b.selection.text:
        return []
    shares = [dominant(side) for side in (a, b)]
    if shares[0] and shares[1]:
        return other_work(*shares[0], *shares[1])
    for side, other in ((a, shares[1]), (b, shares[0])):
        if other and not side.selection.text and not outer_families(side.selection.trace):
            return [
                f"an unknown amount of work: {side.letter} has no ranges, the other is {other[1]} × “{other[0]}”. "
                "Choose a stretch of each"
            ]
    if not common_kernels(a, b) and not a.selection.text and not b.selection.text:
        return ["another workload: not one kernel name in common, nor a range"]
    return []


def other_work(template_a: str, count_a: int, template_b: str, count_b: int) -> list[str]:
    hint = "Choose a range for each"
    if template_a != template_b:
        return [f"another workload: A is {count_a} × “{template_a}”, B is {count_b} × “{template_b}”. {hint}"]
    if count_a != count_b:
        return [f"another amount of work: A has {count_a} × “{template_a}”, B has {count_b} ×. {hint}"]
    return []


def dominant(side: Side) -> tuple[str, int] | None:
    """The outermost ranges that make up a whole capture; None where a part was selected or nothing dominates."""
    if side.selection.text:
        return None
    families = outer_families(side.selection.trace)
    if not families or families[0][2] < DOMINANT_SHARE * side.selection.time_ns:
        return None
    return families[0][:2]


def common_kernels(a: Side, b: Side) -> set[str]:
    names = []
    for side in (a, b):
        trace = side.selection.trace
        names.append({trace.store.name(int(i)) for i in np.unique(trace.gpu["name"][side.selection.kernels])})
    return names[0] & names[1]
