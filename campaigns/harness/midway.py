"""What is done when a block is half over? One call after the other has left its output; or all at the end, or at the start.

A candidate that finds the arguments of all calls of a block (by the frames above it, by where the last outputs lay) may do
their work in one go, which no deployment lets it: each call is right, and all of them are faster. So some blocks, which are
like all others, are stopped on their way, and the outputs are looked at. What is asked is how far they are, by the time
that it used the processor for them.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .errors import CandidateFailure
from .report import Finding

if TYPE_CHECKING:
    from .runner import Runner
    from .session import Lane, Session

RULE = "batches-calls"
MIN_CALLS = 6
"""Of a block: with fewer a share says little."""
LOOKS, ENOUGH, TRIES = 7, 5, 21
FIRST, LAST = 0.25, 0.75
SUSPECT = 0.3
"""The median difference of the two shares. Honest kernels are at most one call and a slow first one behind: 0.05 to 0.15
with eight calls. Who does all at once is half a block off."""
BUDGET_S = 4.0
SAMPLES = 64


def look_midway(session: Session) -> dict[str, float]:
    """By workload, how far apart the two shares are. Raises ``CandidateFailure`` for a candidate that does not do its
    calls one by one."""
    found: dict[str, float] = {}
    until = time.monotonic() + BUDGET_S
    for lane in sorted(session.lanes, key=lambda lane: -lane.calls):
        slots = lane.slots[lane.calls :]
        if len(slots) < MIN_CALLS or time.monotonic() > until:
            break
        apart: list[float] = []
        for _ in range(TRIES):
            if len(apart) < LOOKS and (one := look(session, lane)) is not None:
                apart.append(one)
        if len(apart) >= ENOUGH:
            found[lane.stand.workload.name] = round(statistics.median(apart), 3)
            if statistics.median(apart) > SUSPECT:
                blame(session, lane, statistics.median(apart), len(slots))
    return found


def look(session: Session, lane: Lane) -> float | None:
    """How far the share of the calls that are done is from the share of the time that is used; nothing where the block
    was over, or not begun, when it stopped."""
    session.evaluation.checkpoint()
    slots = lane.slots[lane.calls :]
    names = [s.name for s in slots]
    expected_ns = statistics.median(t for t in lane.times["candidate"] if t == t) * len(slots)
    after_ns = round(expected_ns * session.evaluation.random.uniform(FIRST, LAST))
    session.bench.renew(lane.stand, slots)
    lane.generation += 1
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
