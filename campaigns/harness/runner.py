"""A runner: one process under test, its output buffers, and blocks of calls timed by the evaluator's clock."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import backends
from .channel import Channel, Took
from .errors import CandidateFailure, forged
from .memory import GUARD_BYTES, Area, Place, layout, poison_pool
from .problem import Problem, Workload
from .request import CandidateSource
from .sandbox import Limits, Spec

START_LIMIT_S = 60.0
LOAD_LIMIT_S = 120.0
MAP_LIMIT_S = 120.0
SLOTS_PER_MESSAGE = 32
GUARD = b"\xa5" * GUARD_BYTES
"""What lies around outputs before a call, and after it."""


@dataclass
class InputSlot:
    """One draw of a workload's inputs, in memory that runners can only read (but for ``writable`` copies)."""

    name: str
    area: Area
    places: list[Place]
    writable: bool = False


@dataclass
class OutputSlot:
    """One runner's outputs for one input slot, with guard bytes around each tensor."""

    area: Area
    places: list[Place]
    calls: int = 0

    def tensor(self, place: Place) -> NDArray[Any]:
        return self._tensors[place.name]

    @cached_property
    def _tensors(self) -> dict[str, NDArray[Any]]:
        return {place.name: self.area.view(place) for place in self.places}

    @cached_property
    def guards(self) -> list[NDArray[np.uint8]]:
        """The bytes before and after each output."""
        spans = [
            span
            for p in self.places
            for span in ((p.offset - GUARD_BYTES, p.offset), (p.offset + p.nbytes, p.offset + p.nbytes + 64))
        ]
        return [self.area.bytes[start:end] for start, end in spans]


@dataclass
class Poison:
    """Wrong but ordinary values for the outputs of a workload."""

    pools: dict[str, NDArray[Any]]
    random: np.random.Generator

    @classmethod
    def make(cls, places: Sequence[Place], scales: dict[str, float]) -> Poison:
        random = np.random.default_rng(secrets.randbits(128))
        return cls({p.name: poison_pool(p, scales.get(p.name, 1.0), random) for p in places}, random)

    def fill(self, slot: OutputSlot) -> None:
        for place in slot.places:
            pool, target = self.pools[place.name], slot.tensor(place).reshape(-1)
            start = int(self.random.integers(0, pool.size - target.size))
            np.copyto(target, pool[start : start + target.size])


@dataclass
class Runner:
    """One process that holds one candidate. ``who`` is how failures name it."""

    who: str
    problem: Problem
    source: CandidateSource
    channel: Channel
    load_config: dict[str, Any]
    slots: dict[str, OutputSlot] = field(default_factory=dict)
    loaded: bool = False
    trusted: bool = False
    profiled: bool = False
    """Its calls are looked at and not timed: a profiler has threads of its own."""

    @classmethod
    def start(
        cls,
        who: str,
        problem: Problem,
        source: CandidateSource,
        built: backends.Built,
        limits: Limits | None = None,
        trusted: bool = False,
        should_stop: Callable[[], bool] | None = None,
        profiled: bool = False,
    ) -> Runner:
        """Start the sandbox and return at once; ``load`` waits for it.

        A ``trusted`` one (the baseline) has a compiler at hand and may use threads while it builds. One to be
        ``profiled`` sees torch, whatever its backend.
        """
        spec: Spec = backends.get(source.backend).spec(built, limits or Limits(), ())
        spec.compiler, spec.alone = trusted, not trusted
        spec.packages = spec.packages or profiled
        channel = Channel(spec, should_stop)
        folder = channel.started.root + spec.folder
        config = {"path": f"{folder}/{built.entry}", "folder": folder}
        return cls(who, problem, source, channel, config, trusted=trusted, profiled=profiled)

    def load(self) -> None:
        """Load the code into the process: from here on it is not trusted."""
        if not self.loaded:
            self.channel.wait_ready(START_LIMIT_S)
            if not (self.trusted or self.profiled):
                self.channel.max_threads = self.channel.threads()
            self.channel.ask("load", LOAD_LIMIT_S, **self.load_config)
            self.loaded = True
            self.channel.freeze()
            self._look()

    def map(self, workload: Workload, inputs: Sequence[InputSlot]) -> None:
        """Give the process those slots of a workload that it does not have yet."""
        new = [slot for slot in inputs if slot.name not in self.slots]
        for first in range(0, len(new), SLOTS_PER_MESSAGE):
            self._map(workload, new[first : first + SLOTS_PER_MESSAGE])

    def _map(self, workload: Workload, inputs: Sequence[InputSlot]) -> None:
        places, stride = layout(self.problem, self.problem.outputs, workload, guard=GUARD_BYTES)
        stride = -(-stride // GUARD_BYTES) * GUARD_BYTES
        outputs = Area(stride * len(inputs))
        areas = [{"size": s.area.nbytes, "writable": s.writable} for s in inputs]
        areas.append({"size": outputs.nbytes, "writable": True})
        slots = {}
        for index, slot in enumerate(inputs):
            moved = [Place(p.name, p.offset + index * stride, p.shape, p.dtype) for p in places]
            described = [[index, p.describe()] for p in slot.places]
            slots[slot.name] = described + [[len(inputs), p.describe()] for p in moved]
            self.slots[slot.name] = OutputSlot(outputs, moved)
        axes = [workload.axes[name] for name in self.problem.axes]
        fds = [s.area.fd for s in inputs] + [outputs.fd]
        self.channel.thaw()
        self.channel.mapped_bytes += sum(int(a["size"]) for a in areas)
        self.channel.ask("map", MAP_LIMIT_S, fds, areas=areas, slots=slots, axes=axes)
        self.channel.freeze()
        outputs.close()  # the mapping stays

    def block(self, names: Sequence[str], poison: Poison | None, limit_s: float) -> Took:
        """Call once for each slot and return how long it all took.

        The outputs hold wrong values before. After it the process is stopped, so that what lies in the outputs until
        the next block is what these calls left there. Raises ``CandidateFailure``.
        """
        for name in names:
            self._prepare(self.slots[name], poison)
        channel = self.channel
        woken_ns = channel.cpu_ns()
        with channel.hurried():
            channel.thaw()
            nonce = channel.send("block", calls=list(names))
            if channel.receive(nonce, limit_s, "preparing a call").get("ready") is not True:
                raise forged("answered a request with something else")
            took = channel.timed(secrets.token_hex(8), nonce, limit_s)
            waiting_ns = channel.kept_waiting_ns
            channel.freeze()
        outside_ns = max(0, channel.cpu_ns() - woken_ns - took.cpu_ns - waiting_ns)
        self._look()
        for name in names:
            self._check_guards(name)
        return took._replace(outside_ns=outside_ns)

    def stopped_block(
        self,
        names: Sequence[str],
        poison: Poison | None,
        limit_s: float,
        after_ns: int,
        before: Callable[[], None],
        midway: Callable[[], None],
    ) -> float:
        """A block that is stopped for a look once it has used the processor for ``after_ns``, and then goes on.

        ``before`` is called when its outputs hold wrong values, ``midway`` while it stands still. Returns the share of its
        processor time that it had used then: 1 when it was over already. Raises ``CandidateFailure``.
        """
        for name in names:
            self._prepare(self.slots[name], poison)
        before()
        channel = self.channel
        with channel.hurried():
            channel.thaw()
            nonce = channel.send("block", calls=list(names))
            if channel.receive(nonce, limit_s, "preparing a call").get("ready") is not True:
                raise forged("answered a request with something else")
            share = channel.stopped(secrets.token_hex(8), nonce, limit_s, after_ns, midway)
            channel.freeze()
        self._look()
        for name in names:
            self._check_guards(name)
        return share

    def trace(self, names: Sequence[str], warm: int, most_bytes: int, limit_s: float) -> bytes:
        """One call for each slot under torch.profiler, the first ``warm`` as warm-up: a Kineto trace in gzip."""
        kept = Area(most_bytes)
        try:
            self.channel.thaw()
            self.channel.mapped_bytes += kept.nbytes
            request = {"calls": list(names), "warm": warm, "most_bytes": most_bytes}
            return trace_in(kept, self.channel.ask("trace", limit_s, [kept.fd], **request))
        finally:
            kept.close()

    def _prepare(self, slot: OutputSlot, poison: Poison | None) -> None:
        if poison is None:
            return
        poison.fill(slot)
        for guard in slot.guards:
            guard[:] = GUARD[0]

    def _check_guards(self, name: str) -> None:
        if any(guard.tobytes() != GUARD[: guard.size] for guard in self.slots[name].guards):
            raise CandidateFailure("incorrect", "wrote outside its outputs")

    def _look(self) -> None:
        """Count what runs in its sandbox. One core is timed: a kernel has one thread in one process."""
        if not (self.trusted or self.profiled) and (extra := self.channel.extra_words()):
            raise CandidateFailure("flagged", extra)

    def close(self) -> None:
        self.channel.close()
        self.slots.clear()


def trace_in(area: Area, answer: dict[str, Any]) -> bytes:
    """What a traced process left in the area, by the length that it states."""
    size = answer.get("bytes")
    if not isinstance(size, int) or not 0 < size <= area.nbytes:
        raise forged("stated a length of its trace that cannot be")
    return area.bytes[:size].tobytes()
