"""What is done when a block is half over? One call after the other has left its output; or all at the end, or at the start.

A candidate that finds the arguments of all calls of a block (by the frames above it, by where the last outputs lay) may do
their work in one go, which no deployment lets it: each call is right, and all of them are faster. So some blocks, which are
like all others, are stopped on their way, and the outputs are looked at. What is asked is how far they are, by the time
that it used the processor for them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .errors import CandidateFailure
from .report import Finding

if TYPE_CHECKING:
    from .lane import Lane
    from .runner import InputSlot, Runner
    from .session import Session

RULE = "batches-calls"
MIN_CALLS = 6
"""Of a block: with fewer a share says little."""
LOOKS, ENOUGH, TRIES = 7, 5, 21
FIRST, LAST = 0.25, 0.75
SUSPECT = 0.3
"""The median difference of the two shares. Honest kernels are at most one call and a slow first one behind: 0.05 to 0.15
with eight calls. Who does all at once is half a block off."""
IN_ROUNDS, ROUNDS, MOST_OFTEN = 8, 6, 0.6
"""So many looks are taken in the first rounds of a session, of all its workloads together: enough to blame by, since some
come to nothing."""
BUDGET_S = 4.0
SAMPLES = 64


class Watch:
    """The looks of one session. Most are taken between its rounds' blocks and are like a try that was disturbed: nobody
    knows before a block whether it is one that counts, or when there will be no more of them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.apart: dict[str, list[float]] = {}
        """By workload, how far apart the two shares were in each look."""

    def looks_now(self, lane: Lane) -> bool:
        """Perhaps a look, by chance. After one the inputs of the workload are no longer new.

        None in a confirmation, where nobody may know by one who the candidate is.
        """
        session = self.session
        known = [t for t in lane.times["candidate"] if t == t]
        eligible = sum(2 * each.calls >= MIN_CALLS and not each.single for each in session.lanes)
        if session.stage == "confirmation" or not known or 2 * lane.calls < MIN_CALLS or lane.single:
            return False
        if session.evaluation.random.random() > min(MOST_OFTEN, IN_ROUNDS / (ROUNDS * eligible)):
            return False
        halves = [lane.slots[: lane.calls], lane.slots[lane.calls :]]
        session.evaluation.random.shuffle(halves)
        long_enough = [i for i, slots in enumerate(halves) if len(slots) >= MIN_CALLS]
        stopped = session.evaluation.random.choice(long_enough)
        session.refresh(lane)
        for slots in halves[:stopped]:
            session.block("candidate", lane, slots)
        self.take(lane, halves[stopped])
        everywhere = [one for found in self.apart.values() for one in found]
        if len(everywhere) >= ENOUGH and statistics.median(everywhere) > SUSPECT:
            blame(session, lane, statistics.median(everywhere), len(halves[stopped]))
        return True

    def take(self, lane: Lane, slots: Sequence[InputSlot]) -> None:
        if (one := look(self.session, lane, slots)) is not None:
            self.apart.setdefault(lane.stand.workload.name, []).append(one)

    def finish(self) -> dict[str, float]:
        """By workload, how far apart the two shares are, after as many more looks as are wanted. Raises
        ``CandidateFailure`` for a candidate that does not do its calls one by one."""
        found: dict[str, float] = {}
        until = time.monotonic() + BUDGET_S
        for lane in sorted(self.session.lanes, key=lambda lane: -lane.calls):
            name, slots = lane.stand.workload.name, lane.slots[lane.calls :]
            if len(slots) < MIN_CALLS or time.monotonic() > until:
                break
            for _ in range(TRIES):
                if len(self.apart.get(name, ())) < LOOKS:
                    self.session.bench.renew(lane.stand, slots)
                    lane.generation += 1
                    self.take(lane, slots)
            apart = self.apart.get(name, [])
            if len(apart) >= ENOUGH:
                found[name] = round(statistics.median(apart), 3)
                if statistics.median(apart) > SUSPECT:
                    blame(self.session, lane, statistics.median(apart), len(slots))
        return found


def look(session: Session, lane: Lane, slots: Sequence[InputSlot]) -> float | None:
    """How far the share of the calls that are done is from the share of the time that is used; nothing where the block
    was over, or not begun, when it stopped. The values in ``slots`` are new."""
    session.evaluation.checkpoint()
    names = [s.name for s in slots]
    expected_ns = statistics.median(t for t in lane.times["candidate"] if t == t) * len(slots)
    after_ns = round(expected_ns * session.evaluation.random.uniform(FIRST, LAST))
    runner = session.candidate
    begun: list[bool] = []
    before: list[list[NDArray[np.generic]]] = []

    def remember() -> None:
        before.extend(samples(runner, name) for name in names)

    def compare() -> None:
        begun.extend(changed(samples(runner, name), then) for name, then in zip(names, before, strict=True))

    limit_s = session.evaluation.block_limit_s(lane.limit_s)
    share = runner.stopped_block(names, lane.stand.poison, limit_s, after_ns, remember, compare)
    if not FIRST / 2 < share < (1 + LAST) / 2:
        return None
    in_order = sum(begun[: sum(begun)]) == sum(begun)
    return abs(share - sum(begun) / len(begun)) if in_order else 1.0


def samples(runner: Runner, name: str) -> list[NDArray[np.generic]]:
    """Values from all over the outputs of a slot."""
    slot = runner.slots[name]
    flat = [slot.tensor(place).reshape(-1) for place in slot.places]
    return [values[np.linspace(0, values.size - 1, SAMPLES).astype(int)] for values in flat]


def changed(now: list[NDArray[np.generic]], then: list[NDArray[np.generic]]) -> bool:
    return any(a.tobytes() != b.tobytes() for a, b in zip(now, then, strict=True))


def blame(session: Session, lane: Lane, apart: float, calls: int) -> None:
    name = lane.stand.workload.name
    text = (
        f"{name}: of {calls} calls in a block, when a share of the time was used the share that was done is {apart:.0%} off: "
        "it does the work of several calls at once, which a caller with one cannot have"
    )
    data = {"workload": name, "apart": round(apart, 3), "calls": calls}
    session.evaluation.add_finding(Finding(rule=RULE, severity="block", evidence=text, data=data))
    if RULE not in session.evaluation.request.dismissed:
        raise CandidateFailure("flagged", text, rule=RULE)
