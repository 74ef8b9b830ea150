"""What stays warm between evaluations of one problem: the reference process, the baseline's process, the input memory.

The reference process and its expected outputs are never in one sandbox with a candidate.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import backends
from .channel import Channel, Took
from .errors import CandidateFailure, Infrastructure
from .memory import Area, Place, layout
from .problem import Problem, Workload
from .request import CandidateSource
from .runner import InputSlot, Poison, Runner
from .sandbox import MIB, Limits, Spec

REFERENCE_LIMITS = Limits(memory_bytes=16384 * MIB, processes=64, tmp_bytes=64 * MIB, cpu_s=7 * 24 * 3600)
BASELINE_LIMITS = Limits(
    memory_bytes=8192 * MIB, processes=128, file_bytes=512 * MIB, tmp_bytes=512 * MIB, cpu_s=7 * 24 * 3600
)
START_LIMIT_S = 120.0
DRAW_LIMIT_S = 120.0
COMPILE_LIMIT_S = 180.0
EXPECTED_SLOTS = 2
CHEAP_BYTES = 32 << 20
"""Inputs of all slots of a workload that are drawn in full in each round of a timing session: 8 M normal values take
about a tenth of a second."""
MESSAGE_ITEMS = 64


@dataclass
class Stand:
    """One workload's memory: input slots that grow on demand, and a few places for expected outputs."""

    workload: Workload
    index: int
    slots: list[InputSlot] = field(default_factory=list)
    drawn: set[str] = field(default_factory=set)
    expected: list[tuple[Area, list[Place]]] = field(default_factory=list)
    expect_s: float = 0.0
    poison: Poison | None = None
    scales: dict[str, float] = field(default_factory=dict)
    baseline_calls: int = 0
    baseline_s: float = 0.0
    baseline_right: bool = False


class Bench:
    """Reference, baseline and memory of one problem on this host."""

    def __init__(self, problem: Problem, device: str, baseline: str) -> None:
        self.problem = problem
        self.baseline_name = baseline
        self.should_stop: Callable[[], bool] = lambda: False
        self.stands = {w.name: Stand(w, i) for i, w in enumerate(problem.workloads_on(device))}
        self.random = secrets.SystemRandom()
        self.reference: Channel | None = None
        self.baseline: Runner | None = None

    def ready(self) -> None:
        """Have both processes up. A dead one is started again."""
        self._have_reference()
        if self.baseline is None or self.baseline.channel.closed or self.baseline.channel.exited():
            self._start_baseline()
        assert self.baseline is not None
        self._await_reference()
        self._trusted(self.baseline.load, f"baseline {self.baseline_name}")

    def reference_ready(self) -> None:
        """Have the reference process up, for whom no baseline is asked."""
        self._have_reference()
        self._await_reference()

    def _have_reference(self) -> None:
        if self.reference is None or self.reference.closed or self.reference.exited():
            self._start_reference()

    def _await_reference(self) -> None:
        assert self.reference is not None
        reference = self.reference
        self._trusted(lambda: reference.wait_ready(START_LIMIT_S), "reference process")

    def turn_to(self, name: str) -> None:
        """Another baseline in the place of this one. ``ready`` starts it."""
        if name != self.baseline_name and self.baseline is not None:
            self.baseline.close()
        self.baseline_name = name

    def _start_reference(self) -> None:
        if self.reference is not None:
            self.reference.close()
        for stand in self.stands.values():
            stand.slots.clear()
            stand.drawn.clear()
            stand.expected.clear()
        if self.baseline is not None:
            self.baseline.close()
        files = {name: self.problem.files[name].encode() for name in ("inputs.py", "reference.py")}
        config = {"inputs": "/problem/inputs.py", "reference": "/problem/reference.py"}
        spec = Spec("reference_host", REFERENCE_LIMITS, files, "/problem", packages=True, config=config)
        self.reference = Channel(spec, lambda: self.should_stop())

    def _start_baseline(self) -> None:
        if self.baseline is not None:
            self.baseline.close()
        for stand in self.stands.values():
            stand.baseline_calls = 0
        path = self.problem.baselines[self.baseline_name].file
        source = CandidateSource(backend="torch", files={"kernel.py": self.problem.files[path]})
        built = backends.get("torch").build(source)
        self.baseline = Runner.start(
            "baseline", self.problem, source, built, BASELINE_LIMITS, True, lambda: self.should_stop()
        )

    def _trusted(self, action: Callable[[], Any], who: str) -> Any:
        """Whatever the problem's own code does wrong is no fault of a candidate."""
        try:
            return action()
        except CandidateFailure as failure:
            raise Infrastructure(f"{who}: {failure.message}") from failure

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        assert self.reference is not None
        reference = self.reference
        answer: dict[str, Any] = self._trusted(
            lambda: reference.ask(what, DRAW_LIMIT_S, **more), f"reference process ({what})"
        )
        return answer

    def stand(self, workload: Workload, count: int) -> Stand:
        """The workload's memory with at least that many input slots."""
        stand = self.stands.setdefault(workload.name, Stand(workload, len(self.stands)))
        if not stand.expected:
            self._add_expected(stand)
        if (missing := count - len(stand.slots)) > 0:
            self._add_slots(stand, missing)
        return stand

    def _add_expected(self, stand: Stand) -> None:
        areas, names = [], {}
        for index in range(EXPECTED_SLOTS):
            places, size = layout(self.problem, self.problem.outputs, stand.workload, "float64")
            area = Area(size)
            stand.expected.append((area, places))
            areas.append(area)
            names[self.expected_name(stand, index)] = [[index, p.describe()] for p in places]
        self._map(stand, areas, {}, names)
        for area in areas:
            area.close()

    def _add_slots(self, stand: Stand, count: int) -> None:
        for first in range(0, count, MESSAGE_ITEMS):
            new: list[InputSlot] = []
            for _ in range(min(MESSAGE_ITEMS, count - first)):
                places, size = layout(self.problem, self.problem.inputs, stand.workload)
                new.append(InputSlot(f"{stand.index}.{len(stand.slots) + len(new)}", Area(size), places))
            slots = {s.name: [[i, p.describe()] for p in s.places] for i, s in enumerate(new)}
            self._map(stand, [s.area for s in new], slots, {})
            for slot in new:
                slot.area.seal()
            stand.slots += new

    def _map(self, stand: Stand, areas: list[Area], slots: dict[str, Any], expected: dict[str, Any]) -> None:
        assert self.reference is not None
        self.reference.mapped_bytes += sum(a.nbytes for a in areas)
        self.ask(
            "map",
            fds=[a.fd for a in areas],
            areas=[{"size": a.nbytes} for a in areas],
            slots=slots,
            expected=expected,
            axes=stand.workload.axes,
        )

    def expected_name(self, stand: Stand, index: int) -> str:
        return f"{stand.index}.expected.{index}"

    def seed(self) -> int:
        return self.random.getrandbits(62)

    def refresh(self, stand: Stand, slots: Sequence[InputSlot]) -> None:
        """New values in these slots: a full draw the first time, the problem's ``refresh`` afterwards."""
        for what, chosen in (
            ("draw", [s for s in slots if s.name not in stand.drawn]),
            ("refresh", [s for s in slots if s.name in stand.drawn]),
        ):
            for first in range(0, len(chosen), MESSAGE_ITEMS):
                items = [[s.name, self.seed()] for s in chosen[first : first + MESSAGE_ITEMS]]
                self.ask(what, items=items, dtype=stand.workload.dtype)
        stand.drawn.update(s.name for s in slots)

    def draw(self, stand: Stand, slots: Sequence[InputSlot]) -> None:
        """A full draw into these slots, whether they hold one already or not."""
        stand.drawn.difference_update(s.name for s in slots)
        self.refresh(stand, slots)

    def renew(self, stand: Stand, slots: Sequence[InputSlot]) -> None:
        """New values for a round: full draws where they cost little. A refreshed row may be one that was seen before,
        moved or negated, and a kernel could keep what it knows of it."""
        if draws_cheaply(slots):
            self.draw(stand, slots)
        else:
            self.refresh(stand, slots)

    def edge_names(self, stand: Stand) -> list[str]:
        answer = self.ask("edge_names", slot=stand.slots[0].name, seed=self.seed(), dtype=stand.workload.dtype)
        return [str(name) for name in answer["names"]]

    def edge(self, stand: Stand, slot: InputSlot, name: str) -> None:
        self.ask("edge", slot=slot.name, name=name)
        stand.drawn.discard(slot.name)

    def expect(self, stand: Stand, slot: InputSlot, index: int = 0) -> dict[str, NDArray[np.float64]]:
        """The expected outputs of a slot, valid until the same index is asked for again."""
        answer = self.ask("expect", items=[[slot.name, self.expected_name(stand, index)]])
        stand.expect_s = float(answer["seconds"])
        area, places = stand.expected[index]
        return {p.name: area.view(p) for p in places}

    def baseline_limit_s(self, stand: Stand) -> float:
        """The first calls may compile."""
        return COMPILE_LIMIT_S if stand.baseline_calls < 2 else 30.0

    def run_baseline(self, stand: Stand, slots: Sequence[InputSlot]) -> Took:
        """The baseline over these slots."""
        assert self.baseline is not None
        runner = self.baseline
        self._trusted(lambda: runner.map(stand.workload, slots), "baseline")
        names = [s.name for s in slots]
        limit_s = self.baseline_limit_s(stand)
        took: Took = self._trusted(lambda: runner.block(names, stand.poison, limit_s), f"baseline {self.baseline_name}")
        stand.baseline_calls += 1
        return took

    def close(self) -> None:
        if self.reference is not None:
            self.reference.close()
        if self.baseline is not None:
            self.baseline.close()


def draws_cheaply(slots: Sequence[InputSlot]) -> bool:
    return sum(place.nbytes for slot in slots for place in slot.places) <= CHEAP_BYTES
