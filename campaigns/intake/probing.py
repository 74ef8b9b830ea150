"""Asks an imported problem, in its sandbox, what it takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from campaigns.harness.channel import Channel
from campaigns.harness.errors import CandidateFailure
from campaigns.harness.problem import ITEMSIZE_BYTES
from campaigns.harness.sandbox import MIB, Limits, Spec

from .errors import IntakeError

LIMITS = Limits(memory_bytes=8192 * MIB, processes=64, tmp_bytes=64 * MIB, cpu_s=1800)
START_LIMIT_S = 120.0
CASE_LIMIT_S = 60.0


class Tensor(msgspec.Struct, array_like=True, frozen=True):
    name: str
    dtype: str
    shape: list[int]


class Case(msgspec.Struct, kw_only=True):
    """What one set of arguments gave. ``errors`` are those of the source's own precision against
    float64, by output, where it has an answer in float64."""

    args: dict[str, int]
    inputs: list[Tensor]
    outputs: list[Tensor]
    seconds: float
    errors: dict[str, float] | None
    not_wide: str
    writes: list[str]
    idle: list[str]
    notes: list[str]

    @property
    def values(self) -> int:
        total = 0
        for tensor in self.inputs + self.outputs:
            size = 1
            for n in tensor.shape:
                size *= n
            total += size
        return total


class Probe:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        try:
            return self.channel.ask(what, CASE_LIMIT_S, **more)
        except CandidateFailure as failure:
            raise IntakeError(words(failure, self.channel)) from None

    def constants(self, names: list[str]) -> dict[str, int]:
        return {k: int(v) for k, v in self.ask("constants", names=names)["constants"].items()}

    def case(self, args: Mapping[str, int], idle: list[str] | None = None) -> Case:
        answer = self.ask("case", args=dict(args), idle=idle or [])
        case = msgspec.convert({**answer, "args": dict(args)}, Case)
        for tensor in case.inputs + case.outputs:
            if tensor.dtype not in ITEMSIZE_BYTES:
                raise IntakeError(
                    f"{tensor.name} is of type {tensor.dtype}: one of {', '.join(ITEMSIZE_BYTES)} is needed."
                )
        return case


@contextmanager
def probe(source: str, should_stop: Callable[[], bool]) -> Iterator[Probe]:
    """A sandbox with this source in it. What goes wrong in it raises ``IntakeError`` in its own words."""
    spec = Spec(
        "intake_host",
        LIMITS,
        {"source.py": source.encode()},
        "/problem",
        packages=True,
        config={"source": "/problem/source.py"},
    )
    channel = Channel(spec, should_stop)
    try:
        try:
            channel.wait_ready(START_LIMIT_S)
        except CandidateFailure as failure:
            raise IntakeError(f"it cannot be loaded: {words(failure, channel)}") from None
        yield Probe(channel)
    finally:
        channel.close()


def words(failure: CandidateFailure, channel: Channel) -> str:
    """The failure, and the line of the source that the traceback names last."""
    lines = channel.output.text().splitlines()
    places = [i for i, line in enumerate(lines) if '"/problem/source.py", line ' in line]
    code = lines[places[-1] + 1].strip() if places and places[-1] + 1 < len(lines) else ""
    return f"{failure.message}{f' (at: {code[:200]})' if code else ''}"
