"""What goes into a measurement of a stack, and what comes out: plain data, encodable as JSON.

Times are µs of one step. A number that was not measured is ``None``.
"""

from __future__ import annotations

import msgspec

from campaigns.harness.report import Host, Ratio
from campaigns.harness.request import CandidateSource


class StackKernel(msgspec.Struct, frozen=True, kw_only=True):
    """An approved kernel that stands in for an operator. ``axes`` are those of its own problem, in that one's order."""

    id: str
    operator: str
    label: str
    source: CandidateSource
    axes: list[int]
    speedup: Ratio | None = None
    """Of the operator alone, at the nearest workload that was measured when it was judged."""


class StackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario's step with these kernels, put in one after the other in this order."""

    scenario: str
    files: dict[str, str]
    kernels: list[StackKernel]
    bases: tuple[str, ...] = ("pieces", "eager", "compile")
    """Ways to run without any kernel: with the cache in pieces, as a first draft has it; all at once; by torch.compile. The
    fastest of them is the true baseline, and what the stack is built on."""
    tried: tuple[str, ...] = ()
    """Ids of the last of ``kernels``: not approved, each not told apart from its incumbent by itself, tried together. One
    for an operator that an earlier kernel serves takes its place."""
    rounds: int = 40
    draws: int = 4
    time_limit_s: float = 900.0


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Logits against a float64 reference: ``error`` is max |out − ref| ÷ (RMS(ref) + |ref|).

    ``rms_error`` is RMS(out − ref) ÷ RMS(ref): over so many values it tells a drift that no single value shows.
    ``ties`` are steps in which the reference's own two best tokens lie closer than the tolerance: they prove nothing.
    """

    steps: int
    agreed: int
    ties: int
    error: float
    tolerance: float
    passed: bool
    rms_error: float = 0.0
    detail: str = ""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    time_us: float | None = None
    parity: Parity | None = None
    detail: str = ""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The step with one kernel more than before."""

    kernel: str
    operator: str
    label: str
    time_us: float
    over_base: Ratio
    """Of the whole step, over the true baseline."""
    gain: Ratio
    """Of the whole step, over the stage before."""
    saved_us: float
    share: Ratio
    """Of the step before that went into this operator, as a share: what leaving it out saved."""
    ceiling: float | None
    """Amdahl: 1/(1 − p(1 − 1/S)) of the step before, with the operator's measured speed-up S."""
    limit: float
    """The same for S → ∞."""
    parity: Parity
    flag: str = ""
    """Why the gain is not believed: it is above the limit, so that something else than the operator became faster."""
    note: str = ""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    kernel: str
    operator: str
    label: str
    why: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What the tried kernels do together to the step with those before them."""

    kernels: list[str]
    """Those that were right in the model: the combination that was measured."""
    gain: Ratio | None
    holds: bool
    why: str


class StackReport(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    workload: str
    axes: dict[str, int]
    files_sha256: str
    host: Host
    bases: list[Base]
    base: str
    base_us: float
    stages: list[Stage]
    left_out: list[LeftOut]
    refused: str = ""
    """Why the stack as a whole is not accepted; what stands in ``stages`` was in order."""
    trial: Trial | None = None
    noise: Ratio | None = None
    """The base against a second process of itself, in the same session."""
    floor_us: float | None = None
    bytes_per_step: float | None = None
    flop_per_step: float | None = None
    peaks: dict[str, float] = {}
    seconds: float = 0.0

    @property
    def now_us(self) -> float:
        return self.stages[-1].time_us if self.stages else self.base_us


def decode(data: bytes | str) -> StackReport:
    return msgspec.json.decode(data, type=StackReport)


def encode(report: StackReport) -> bytes:
    return msgspec.json.encode(report)
