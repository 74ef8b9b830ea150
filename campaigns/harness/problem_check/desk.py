"""The problem's own code behind a desk: draws inputs and answers with outputs, from its sandbox, in memory seen here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..channel import Channel
from ..memory import Area, Place, as_float64, layout
from ..problem import Problem, Workload
from ..sandbox import MIB, Limits, Spec

LIMITS = Limits(memory_bytes=8192 * MIB, processes=64, tmp_bytes=64 * MIB, cpu_s=3600)
START_LIMIT_S = 120.0
Values = dict[str, NDArray[np.float64]]


class Desk:
    """One reference process. What its code does wrong raises ``CandidateFailure``, with its own words."""

    def __init__(self, problem: Problem, should_stop: Callable[[], bool], limit_s: float) -> None:
        self.problem, self.limit_s = problem, limit_s
        files = {name: problem.files[name].encode() for name in ("inputs.py", "reference.py")}
        config = {"inputs": "/problem/inputs.py", "reference": "/problem/reference.py"}
        self.channel = Channel(
            Spec("reference_host", LIMITS, files, "/problem", packages=True, config=config), should_stop
        )
        self.opened = 0

    def ready(self) -> None:
        self.channel.wait_ready(START_LIMIT_S)

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        return self.channel.ask(what, self.limit_s, **more)

    def open(self, workload: Workload) -> Table:
        self.opened += 1
        return Table(self, workload, f"{self.opened}.inputs", f"{self.opened}.expected")

    def output(self) -> str:
        """What the problem's code printed, tracebacks included."""
        self.channel.drain()
        return self.channel.output.text()

    def close(self) -> None:
        self.channel.close()


class Table:
    """One workload's memory: one slot of inputs, one of expected outputs. Unlike a candidate's it can be written here."""

    def __init__(self, desk: Desk, workload: Workload, slot: str, into: str) -> None:
        self.desk, self.workload, self.slot, self.into = desk, workload, slot, into
        self.places, nbytes = layout(desk.problem, desk.problem.inputs, workload)
        self.out_places, out_bytes = layout(desk.problem, desk.problem.outputs, workload, "float64")
        self.inputs, self.expected = Area(nbytes), Area(out_bytes)
        desk.channel.mapped_bytes += self.inputs.nbytes + self.expected.nbytes
        desk.ask(
            "map",
            fds=[self.inputs.fd, self.expected.fd],
            areas=[{"size": self.inputs.nbytes}, {"size": self.expected.nbytes}],
            slots={slot: [[0, p.describe()] for p in self.places]},
            expected={into: [[1, p.describe()] for p in self.out_places]},
            axes=workload.axes,
        )
        self.inputs.close()
        self.expected.close()
        self.expect_s = 0.0

    def draw(self, seed: int) -> None:
        self.desk.ask("draw", items=[[self.slot, seed]], dtype=self.workload.dtype)

    def refresh(self, seed: int) -> list[str] | None:
        """In place. The names that ``refresh`` says it changed, or None where the process does not tell."""
        answer = self.desk.ask("refresh", items=[[self.slot, seed]], dtype=self.workload.dtype)
        return answer.get("changed", [None])[0]

    def edge_names(self, seed: int) -> list[str]:
        names = self.desk.ask("edge_names", slot=self.slot, seed=seed, dtype=self.workload.dtype)["names"]
        return [str(name) for name in names]

    def edge(self, name: str) -> None:
        self.desk.ask("edge", slot=self.slot, name=name)

    def answer(self) -> Values:
        """The reference's outputs for the inputs as they are, copied."""
        answer = self.desk.ask("expect", items=[[self.slot, self.into]])
        self.expect_s = float(answer["seconds"])
        return {p.name: self.expected.view(p).copy() for p in self.out_places}

    def bits(self, place: Place) -> NDArray[np.uint8]:
        """The bytes of one input, to be read and written."""
        return self.inputs.bytes[place.offset : place.offset + place.nbytes]

    def snapshot(self) -> NDArray[np.uint8]:
        return self.inputs.bytes.copy()

    def restore(self, saved: NDArray[np.uint8]) -> None:
        self.inputs.bytes[:] = saved

    def values(self, place: Place) -> NDArray[np.float64]:
        return as_float64(self.inputs.view(place), place.dtype)
