"""What makes the difference: the slower side held against the faster one, largest part first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from profiling.compare.difference import NOISE, per_name
from profiling.compare.inner import Family, families
from profiling.compare.reasons import Side
from profiling.findings.pieces import LOOPS, MIN_PIECES
from profiling.words import count, duration, percent

MIN_SHARE = 0.1
"""A part below this share of the difference is not worth a sentence."""


@dataclass(frozen=True)
class Cause:
    """``ns``: how much of the difference of one occurrence it stands for. Causes overlap and do not add up."""

    rule: str
    title: str
    evidence: str
    ns: float


def causes(slow: Side, fast: Side) -> list[Cause]:
    whole = slow.selection.time_ns - fast.selection.time_ns
    if whole <= NOISE * slow.selection.time_ns:
        return []
    found = [*pieces(slow, fast), *waiting(slow, fast), *running(slow, fast)]
    found = [cause for cause in found if cause.ns >= MIN_SHARE * whole]
    return sorted(found, key=lambda cause: (cause.rule != "pieces", -cause.ns))


def pieces(slow: Side, fast: Side) -> list[Cause]:
    """The same range cut into more pieces on the slower side. Where several are, the one that costs most."""
    here, there = families(slow.selection), families(fast.selection)
    found = []
    for key, family in here.items():
        other = there[key].pieces if key in there else 0
        if family.pieces < MIN_PIECES or LOOPS.search(family.name) or 2 * other > family.pieces:
            continue
        if family.parent:
            found += cut_inside(slow, fast, family, other, around(here, family), around(there, family))
        elif same_kind(slow, fast):
            found.append(cut(slow, fast, family, other, "the compared range"))
    return sorted(found, key=lambda cause: -cause.ns)[:1]


def around(families: dict[tuple[str, str], Family], family: Family) -> Family | None:
    """The ranges in which the pieces stand, on one side, whatever they stand in themselves."""
    same = [f for (_, name), f in families.items() if name == family.parent]
    if not same:
        return None
    return replace(same[0], count=sum(f.count for f in same), total_ns=sum(f.total_ns for f in same))


def same_kind(slow: Side, fast: Side) -> bool:
    """Whether ranges of one name, up to digits, were chosen for both: else their pieces need not be the same work."""
    kinds = [{re.sub(r"\d+", "#", n) for n in side.selection.names(1000)} for side in (slow, fast)]
    return bool(kinds[0]) and kinds[0] == kinds[1]


def cut_inside(
    slow: Side, fast: Side, family: Family, other: int, outer: Family | None, outer_fast: Family | None
) -> list[Cause]:
    """Only where both sides run the surrounding range equally often: else that one is what differs."""
    if not outer or not outer_fast or abs(outer.count - outer_fast.count) > 0.1 * outer.count:
        return []
    inside = family.parent.replace("#", "N")
    each = (outer.total_ns / outer.count, outer_fast.total_ns / outer_fast.count)
    evidence = f": {inside} takes {duration(each[0])} instead of {duration(each[1])}"
    if outer.count > 1:
        evidence += f", {outer.count:,.0f} times over"
    return [cut(slow, fast, family, other, inside, evidence, outer.total_ns - outer_fast.total_ns)]


def cut(
    slow: Side, fast: Side, family: Family, other: int, inside: str, more: str = "", ns: float | None = None
) -> Cause:
    title = f"{slow.letter} does in {count(family.pieces, 'piece')} what {fast.letter} does in {max(1, other)}"
    named = f"{family.first} … {family.last}" if family.first != family.last else f"{family.pieces} × {family.first}"
    evidence = f"{named} stand inside {inside}, where {fast.letter} has "
    evidence += count(other, "such range") if other else "none"
    whole = slow.selection.time_ns - fast.selection.time_ns
    return Cause("pieces", title, f"{evidence}{more}.", whole if ns is None else ns)


def waiting(slow: Side, fast: Side) -> list[Cause]:
    one, other = slow.selection, fast.selection
    words = {
        "launch-bound": (("launch", "host"), "the GPU waits for the host's next launch"),
        "host-sync": (("sync",), "the GPU runs dry while the host waits for it"),
        "queued": (("queued",), "the GPU is idle with work already launched (a dependency, or latency)"),
        "unknown": (("unknown",), "the GPU is idle before events without a recorded launch"),
    }
    found = []
    for rule, (parts, text) in words.items():
        here, there = (sum(side.idle_ns[part] for part in parts) for side in (one, other))
        evidence = (
            f"{text[0].upper()}{text[1:]} for {duration(here)} in {slow.letter}, {duration(there)} in {fast.letter}"
        )
        title = f"{slow.letter} waits {duration(here - there)} longer"
        if rule == "launch-bound" and one.launches > (1 + NOISE) * other.launches:
            title = f"{one.launches:,.0f} launches in {slow.letter}, {other.launches:,.0f} in {fast.letter}"
        found.append(Cause(rule, title, evidence + ".", here - there))
    return found


def running(slow: Side, fast: Side) -> list[Cause]:
    """Kernels themselves: those whose time differs most."""
    here, there = per_name(slow.selection), per_name(fast.selection)
    more = slow.selection.busy_ns - fast.selection.busy_ns
    zero = {"total_ns": 0.0}
    by_name = {n: here.get(n, zero)["total_ns"] - there.get(n, zero)["total_ns"] for n in {**here, **there}}
    top = [name for name in sorted(by_name, key=lambda n: -by_name[n])[:3] if by_name[name] > MIN_SHARE * max(more, 1)]
    listed = "; ".join(f"{name[:80]} {duration(by_name[name])}" for name in top)
    share = percent(slow.selection.busy_ns / max(1.0, slow.selection.time_ns))
    evidence = f"The GPU is busy {share} of {slow.letter}" + (f". Most of the difference: {listed}." if listed else ".")
    return [Cause("kernels", f"Kernels run {duration(more)} longer in {slow.letter}", evidence, more)]
