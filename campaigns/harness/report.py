"""What an evaluation leaves: evidence, not a verdict. ``campaigns.judge`` turns a stored report into a verdict.

A number that was not measured is ``None``, never 0 and never 1.0. Times are microseconds of one call.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

REPORT_SCHEMA = 1

Severity = Literal["note", "warning", "block"]
Status = Literal["passed", "failed", "skipped", "error"]
Outcome = Literal[
    "measured",  # every stage that was asked for ran to its end
    "incorrect",
    "build_failed",
    "launch_failed",  # built, but crashed or raised when it was called
    "timed_out",
    "out_of_memory",
    "flagged",  # stopped at a blocking finding, before it was measured
    "infrastructure",  # the harness could not measure, and the candidate is not to blame
]


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A speed-up with its 95 % confidence interval. Above 1 means the candidate is faster."""

    value: float
    lo: float
    hi: float


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a detector saw. ``evidence`` is a sentence for a person; ``data`` holds the numbers behind it."""

    rule: str
    severity: Severity
    evidence: str
    path: str | None = None
    line: int | None = None
    data: dict[str, Any] = {}


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of the order in docs/harness.md. ``detail`` is one sentence; ``evidence`` is what it rests on."""

    name: str
    status: Status
    detail: str
    seconds: float
    evidence: dict[str, Any] = {}


class WorkloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """One workload. ``error`` is max |out − ref| ÷ (RMS(ref) + |ref|), right when at most ``tolerance``. Times: µs a call."""

    name: str
    hidden: bool
    axes: dict[str, int]
    correct: bool | None = None
    error: float | None = None
    tolerance: float | None = None
    detail: str = ""
    time_us: float | None = None
    baseline_us: float | None = None
    incumbent_us: float | None = None
    speedup: Ratio | None = None
    """Over the baseline."""
    over_incumbent: Ratio | None = None
    noise: Ratio | None = None
    """The incumbent against a second process of itself, measured in the same interleaved session."""
    floor_us: float | None = None
    labels: list[str] = []
    """What qualifies the numbers: ``host-bound``, ``warm-cache``, …"""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was measured. Ratios are never mixed across hosts."""

    name: str
    kind: str
    """``cpu`` or the GPU's name as the driver gives it."""
    processor: str
    versions: dict[str, str]
    sandbox: str
    """``bubblewrap``, or ``none`` where a setting allowed that."""
    sandbox_missing: list[str] = []
    """Protections that this host could not give, each a short phrase."""
    peaks: dict[str, float] = {}
    """Measured ceilings: ``copy_bytes_per_s``, ``fp32_flop_per_s``, …"""

    @property
    def hardware(self) -> str:
        """What did the work, by name: the GPU, else the processor."""
        return self.processor if self.kind == "cpu" else self.kind


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """The second judgement of a would-be keep, in fresh processes with new seeds."""

    speedup: Ratio | None
    over_incumbent: Ratio | None
    noise: Ratio | None
    correct: bool
    detail: str = ""


class RangeWin(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the swept axis, ends included, in which the candidate wins; the ratios are over the workloads in it."""

    axis: str
    lo: int
    hi: int
    workloads: list[str]
    speedup: Ratio | None
    over_incumbent: Ratio | None
    noise: Ratio | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Outcome
    summary: str
    """One sentence: why the outcome is what it is."""
    problem: str
    problem_sha256: str
    candidate_sha256: str
    incumbent_sha256: str | None
    baseline: str
    backend: str
    mode: str
    harness_version: str
    host: Host
    stages: list[StageResult]
    workloads: list[WorkloadResult] = []
    findings: list[Finding] = []
    speedup: Ratio | None = None
    """Over the baseline: geometric mean over the workloads, hidden ones included."""
    over_incumbent: Ratio | None = None
    noise: Ratio | None = None
    confirmation: Confirmation | None = None
    range: RangeWin | None = None
    """Where it wins, when not as a whole; the confirmation is then about this range."""
    engagement: list[dict[str, Any]] = []
    """What really ran on the device: ``{"kernel", "calls", "total_us", "share", "own"}``."""
    build_log: str = ""
    output: str = ""
    """What the candidate printed, truncated in the middle. Data, never instructions."""
    seconds: float = 0.0
    schema: int = REPORT_SCHEMA


def encode(report: Report) -> bytes:
    """The report as JSON."""
    return msgspec.json.encode(report)


def decode(data: bytes | str) -> Report:
    """A stored report. Raises ``msgspec.ValidationError`` with the path of what does not fit."""
    return msgspec.json.decode(data, type=Report)
