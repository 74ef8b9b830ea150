"""NVTX ranges inside of a selection, by name up to digits: how many, how long, and into how many pieces they are cut."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiling.compare.selection import Selection
from profiling.events import Column

MAX_FAMILIES = 2000


@dataclass(frozen=True)
class Family:
    """Ranges of one name (digits as #) inside the same name of parent, per occurrence of the selection.

    ``pieces`` is how many of them stand inside one parent (median); ``first`` and ``last`` are names of one parent's.
    """

    parent: str
    name: str
    count: float
    total_ns: float
    pieces: int
    first: str
    last: str


def families(selection: Selection) -> dict[tuple[str, str], Family]:
    """Keyed by (parent's template, own template). A child of the selected ranges themselves has the parent ``""``."""
    trace, nvtx = selection.trace, selection.trace.nvtx
    rows = inside(selection)
    if not len(rows):
        return {}
    template, texts = templates(selection, rows)
    above = nvtx["parent"][rows].astype(np.int64)
    of_range = np.full(len(nvtx["start"]), -1, np.int64)
    of_range[rows] = template
    parent = np.where(above >= 0, of_range[np.maximum(above, 0)], -1)
    took = lengths(selection, rows)
    key = (parent + 1) * (len(texts) + 1) + template
    order = np.lexsort((rows, above, key))
    firsts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
    result = {}
    for low, high in zip(firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
        part = order[low:high]
        groups = np.flatnonzero(np.append(True, np.diff(above[part]) != 0))
        sizes = np.diff(np.append(groups, len(part)))
        most = part[groups[int(sizes.argmax())] :][: int(sizes.max())]
        names = [trace.store.name(int(nvtx["name"][rows[i]])) for i in (most[0], most[-1])]
        words = (texts[parent[part[0]]] if parent[part[0]] >= 0 else "", texts[template[part[0]]])
        per = selection.occurrences
        result[words] = Family(*words, len(part) / per, float(took[part].sum()) / per, int(np.median(sizes)), *names)
        if len(result) >= MAX_FAMILIES:
            break
    return result


def inside(selection: Selection) -> Column:
    """Nested ranges with work in them, below the selected ranges; for a stretch of time those that begin in it. Of a capture
    that saw no GPU all of them: what the host did is all that there is."""
    trace, nvtx = selection.trace, selection.trace.nvtx
    working = nvtx["nested"] & (trace.nvtx_totals["events"] > 0) if trace.devices else nvtx["nested"]
    if not len(selection.ranges):
        return np.flatnonzero(working & (nvtx["start"] >= selection.start[0]) & (nvtx["start"] < selection.end[0]))
    chosen = np.zeros(len(nvtx["start"]), bool)
    chosen[selection.ranges] = True
    rows = np.flatnonzero(working & ~chosen)
    found, above = np.zeros(len(rows), bool), nvtx["parent"][rows].astype(np.int64)
    while (above >= 0).any():
        at = np.maximum(above, 0)
        found |= (above >= 0) & chosen[at]
        above = np.where(above >= 0, nvtx["parent"][at], -1)
    return rows[found]


def templates(selection: Selection, rows: Column) -> tuple[Column, list[str]]:
    """Per row the index of its name with digits replaced, and those texts."""
    used, inverse = np.unique(selection.trace.nvtx["name"][rows], return_inverse=True)
    texts = [re.sub(r"\d+", "#", selection.trace.store.name(int(i))) for i in used]
    unique, of_name = np.unique(np.array(texts, object), return_inverse=True)
    return of_name[inverse], [str(text) for text in unique]


def lengths(selection: Selection, rows: Column) -> Column:
    """Time of each range, ns: on the host, or from the first to the last GPU event launched in it if longer."""
    nvtx, totals = selection.trace.nvtx, selection.trace.nvtx_totals
    return np.maximum(nvtx["end"][rows] - nvtx["start"][rows], totals["last"][rows] - totals["first"][rows])
