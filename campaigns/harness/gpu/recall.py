"""Does a candidate gain from values that it has seen? Then its time in a block of many calls says nothing.

Each slot is called once on new values, with wrong values in its outputs; then a whole timed block runs; then each slot is
called once again. A kernel takes the same both times, but for what the machine does, and that it does to the incumbent's
two processes as well: they are the control in every repetition, and against each other the measure of what chance makes.
It does not matter by what a candidate knows the values again, nor whether it copies an answer or leaves one lying there.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..report import Finding
from ..session import BASELINE, CANDIDATE, INCUMBENT, SECOND
from ..statistics import centre_of
from .lane import LONG, ONCE, PRIME, Lane

if TYPE_CHECKING:
    from .session import GpuSession

REPEATS, MORE = 3, 8
"""A look, and what decides where the look is suspicious: of those alone, since the first chose to go on."""
MARGIN = math.log1p(0.05)
LANES = 4
LOOKED_AT = 3


@dataclass
class Recall:
    """By runner and repetition: log(time on new values ÷ time once they were seen)."""

    gains: dict[str, list[float]] = field(default_factory=dict)

    def add(self, new_ns: dict[str, float], seen_ns: dict[str, float]) -> None:
        for who, new in new_ns.items():
            self.gains.setdefault(who, []).append(math.log(max(1.0, new) / max(1.0, seen_ns[who])))

    @property
    def controls(self) -> list[str]:
        """The incumbent's processes; where there are none the baseline."""
        found = [who for who in (INCUMBENT, SECOND) if who in self.gains]
        return found or [who for who in (BASELINE,) if who in self.gains]

    def excess(self, first: int = 0) -> list[float]:
        """By repetition, how much more the candidate gains than the controls do."""
        mine = self.gains[CANDIDATE][first:]
        others = zip(*(self.gains[who][first:] for who in self.controls), strict=True)
        return (
            [gain - statistics.fmean(other) for gain, other in zip(mine, others, strict=True)]
            if self.controls
            else mine
        )

    def chance(self, first: int = 0) -> float:
        """How far two processes of the same code differ here: the wider end of their interval; 0 with one control."""
        if len(self.controls) < 2:
            return 0.0
        one, two = (self.gains[who][first:] for who in self.controls)
        found = centre_of([a - b for a, b in zip(one, two, strict=True)])
        return max(abs(found.lo), abs(found.hi))

    def suspicious(self) -> bool:
        """Whether more repetitions are worth their time: seen even over how far the controls usually differ from each other."""
        return statistics.median(self.excess()) > MARGIN + self.usual()

    def usual(self) -> float:
        """How far two processes of the same code usually differ in a repetition; 0 with one control."""
        if len(self.controls) < 2:
            return 0.0
        one, two = (self.gains[who] for who in self.controls)
        return statistics.median(abs(a - b) for a, b in zip(one, two, strict=True))

    def certain(self, first: int = 0) -> bool:
        """Whether even the lower end of the gain is beyond the margin and beyond what chance makes."""
        return centre_of(self.excess(first)).lo > MARGIN + self.chance(first)

    def told(self) -> dict[str, Any]:
        return {who: [round(gain, 4) for gain in gains] for who, gains in self.gains.items()}


def look_for_memory(session: GpuSession, faster: bool) -> dict[str, dict[str, Any]]:
    """What the candidate gains from seen values, by workload; a finding where that is beyond doubt.

    ``faster``: over all workloads it gains beyond the noise.
    """
    found = {}
    for lane in chosen(session, faster):
        recall = Recall()
        for _ in range(REPEATS):
            measure(session, lane, recall)
        if recall.suspicious():
            for _ in range(MORE):
                measure(session, lane, recall)
            if recall.certain(REPEATS):
                session.hooks.add_finding(finding(lane, recall))
        found[lane.workload.name] = recall.told()
    return found


def chosen(session: GpuSession, faster: bool) -> list[Lane]:
    """Where it seems faster than the incumbent (or the baseline), the largest gains first, and one more by lot.

    One that is not ``faster`` as a whole may be kept for a part: then those that are faster beyond their interval count, for
    the others gain nothing from what they remember. Such a look costs as much as the timing itself.
    """
    if CANDIDATE not in session.runners:
        return []
    against = session.incumbents or [who for who in (BASELINE,) if who in session.runners]
    if not against:
        return []
    gains = {lane.workload.name: centre_of(lane.log_ratios(against, CANDIDATE)) for lane in session.lanes}
    seeming = [lane for lane in session.lanes if gains[lane.workload.name].hi > 0]
    seeming.sort(key=lambda lane: -gains[lane.workload.name].centre)
    first = [lane for lane in seeming if faster or gains[lane.workload.name].lo > 0][:LANES]
    rest = [lane for lane in seeming if lane not in first]
    return first + ([session.random.choice(rest)] if rest else [])


def measure(session: GpuSession, lane: Lane, recall: Recall) -> None:
    """One repetition: all runners on new values, a block of each, all runners again. The evaluator's clock."""
    session.hooks.checkpoint()
    order = list(session.runners)
    session.random.shuffle(order)
    session.renew(lane, lane.slots, session.bench.scales_of(lane.workload))
    new = {who: once(session, lane, who) for who in order}
    for slot in session.random.sample(lane.slots, min(LOOKED_AT, len(lane.slots))):
        session.check(lane, session.runners[CANDIDATE], slot)
    for who in order:
        session.runners[who].block([lane.graph(LONG)], [], session.limit_s(lane, who))
    seen = {who: once(session, lane, who) for who in order}
    recall.add(new, seen)


def once(session: GpuSession, lane: Lane, who: str) -> float:
    """Nanoseconds of each slot once."""
    took = session.runners[who].block([lane.graph(ONCE)], [lane.graph(PRIME)], session.limit_s(lane, who))
    return float(took.wall_ns)


def finding(lane: Lane, recall: Recall) -> Finding:
    gain = math.expm1(centre_of(recall.excess(REPEATS)).centre)
    return Finding(
        rule="remembers-inputs",
        severity="block",
        evidence=f"{lane.workload.name}: once it has seen its values it is {gain:.0%} faster than on new ones, beyond what "
        "the incumbent is: it keeps results from call to call",
        data={"workload": lane.workload.name, "log_gains": recall.told(), "chance": round(recall.chance(REPEATS), 4)},
    )
