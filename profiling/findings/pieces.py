"""The same work in N pieces: sibling NVTX ranges that differ by a number only, best shown where others need fewer."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiling.events import Column, Table
from profiling.findings.finding import Facts, Finding
from profiling.orders import small_codes
from profiling.trace import Trace
from profiling.words import count, duration, percent

MIN_PIECES = 4
MAX_PARENTS = 2000
"""So many parents of one name tell enough."""
LOOPS = re.compile(r"step|iter|epoch|batch|layer|token|request|stage|expert|rank|microb", re.IGNORECASE)
"""Ranges that repeat because the work does, not because it was cut up."""
PIECES = re.compile(r"chunk|piece|tile|slice|split|segment|shard", re.IGNORECASE)
"""What people call the parts of work that they cut up. Operators of a framework (``aten::slice``) are none."""
NEARLY_ALL = 0.8
BUSY_ENOUGH = 0.6
"""Pieces that keep the GPU this busy are no problem of their number."""


@dataclass(frozen=True)
class Split:
    """One parent range and its pieces, all with the same name but for digits."""

    parent: int
    pieces: list[int]


def find(facts: Facts) -> list[Finding]:
    trace = facts.trace
    groups = splits(trace)
    found = (describe(facts, parent_name, template, parts) for (parent_name, template), parts in groups.items())
    return [finding for finding in found if finding]


def splits(trace: Trace) -> dict[tuple[int, str], list[Split]]:
    """By (parent's name, template): the parents with their numbered pieces, where any of them has enough pieces."""
    nvtx = trace.nvtx
    inner = np.flatnonzero((nvtx["parent"] >= 0) & nvtx["nested"])
    if not len(inner):
        return {}
    used, inverse = small_codes(nvtx["name"][inner])
    texts = [re.sub(r"\d+", "#", trace.store.name(int(i))) for i in used]
    templates, template_of = np.unique(np.array(texts), return_inverse=True)
    keep = np.array([LOOPS.search(text) is None for text in templates])[template_of[inverse]]
    inner, template = inner[keep], template_of[inverse][keep]
    keep = in_large_families(nvtx, inner, template, len(templates))
    inner, template, parent = inner[keep], template[keep], nvtx["parent"][inner[keep]].astype(np.int64)
    order = np.argsort(parent * len(templates) + template, kind="stable")
    inner, template, parent = inner[order], template[order], parent[order]
    firsts = np.flatnonzero(np.append(True, (np.diff(parent) != 0) | (np.diff(template) != 0))[: len(inner)])
    sizes = np.diff(np.append(firsts, len(inner)))
    family = nvtx["name"][parent[firsts]].astype(np.int64) * len(templates) + template[firsts]
    result: dict[tuple[int, str], list[Split]] = {}
    for chosen in np.unique(family[sizes >= MIN_PIECES]).tolist():
        groups = np.flatnonzero(family == chosen)[:MAX_PARENTS]
        pieces = [inner[firsts[g] : firsts[g] + sizes[g]].tolist() for g in groups]
        key = (chosen // len(templates), str(templates[chosen % len(templates)]))
        result[key] = [Split(int(parent[firsts[g]]), p) for g, p in zip(groups, pieces, strict=True)]
    return result


def in_large_families(nvtx: Table, inner: Column, template: Column, templates: int) -> Column:
    """Whether any parent of a range's family (parent's name and template) has MIN_PIECES children at all."""
    parent = nvtx["parent"][inner]
    crowded = np.bincount(parent, minlength=1)[parent] >= MIN_PIECES
    family = nvtx["name"][parent].astype(np.int64) * templates + template
    return np.isin(family, np.unique(family[crowded]))


def describe(facts: Facts, parent_name: int, template: str, parts: list[Split]) -> Finding | None:
    trace, totals = facts.trace, facts.trace.nvtx_totals
    working = [s for s in parts if totals["events"][s.parent] > 0]
    most = max((len(s.pieces) for s in working), default=0)
    many = [s for s in working if len(s.pieces) == most]
    few = [s for s in working if len(s.pieces) * 2 <= most]
    alike = "::" not in template and PIECES.search(template) is not None
    if most < MIN_PIECES or not (alike or numbered(trace, many[0].pieces)):
        return None
    piece_busy = share_busy(trace, [p for s in many for p in s.pieces])
    slow, quick = (median_span(trace, [s.parent for s in group]) for group in (many, few))
    if piece_busy > BUSY_ENOUGH and not (few and quick < 0.9 * slow):
        return None
    first, last = (trace.store.name(int(trace.nvtx["name"][many[0].pieces[i]])) for i in (0, -1))
    parent = trace.store.name(parent_name)
    events = int(np.median([totals["events"][p] for s in many for p in s.pieces]))
    which = f"{first} … {last} stand" if first != last else f"{first} stands {most} times"
    evidence = (
        f"{which} inside {parent}, {count(len(many), 'time')} over: "
        f"{count(events, 'GPU operation')} a piece, the GPU busy {percent(piece_busy)} of a piece."
    )
    saving = int((1 - piece_busy) * slow * len(many))
    if few and quick < slow:
        saving = int((slow - quick) * len(many))
        evidence += (
            f" In “{root_name(trace, few[0].parent)}” the same range has "
            f"{count(len(few[0].pieces), 'piece')} and takes {duration(quick)} instead of {duration(slow)}."
        )
    start, end = region(facts, many)
    return Finding("pieces", f"The same work in {most} pieces", evidence, start, end, saving)


def numbered(trace: Trace, pieces: list[int]) -> bool:
    """Digits in every name, and not the same name throughout."""
    names = {trace.store.name(int(trace.nvtx["name"][p])) for p in pieces}
    return len(names) > 1 and all(re.search(r"\d", name) for name in names)


def median_span(trace: Trace, ranges: list[int]) -> float:
    """Median time on the GPU from the first to the last event launched in each range, ns."""
    totals = trace.nvtx_totals
    return float(np.median(totals["last"][ranges] - totals["first"][ranges])) if ranges else float("inf")


def share_busy(trace: Trace, ranges: list[int]) -> float:
    totals = trace.nvtx_totals
    working = np.array([r for r in ranges if totals["events"][r] > 0], np.int64)
    span = (totals["last"][working] - totals["first"][working]).sum()
    return min(1.0, float(totals["gpu_ns"][working].sum() / max(1, span)))


def root_name(trace: Trace, nvtx: int) -> str:
    return trace.store.name(int(trace.nvtx["name"][trace.root(nvtx)]))


def region(facts: Facts, many: list[Split]) -> tuple[int, int]:
    """The outermost ranges around the parents, from the first to the last; where that is nearly all of the capture, the
    parent half-way through alone: to be shown everything tells nothing."""
    trace = facts.trace
    roots = sorted({trace.root(s.parent) for s in many})
    start, end = int(trace.nvtx["start"][roots[0]]), max(int(trace.nvtx["end"][r]) for r in roots)
    if end - start < NEARLY_ALL * facts.span_ns:
        return start, end
    one = many[len(many) // 2].parent
    return int(trace.nvtx["start"][one]), int(trace.nvtx["end"][one])
