"""From a report and nothing else to a verdict. Pure: a stored report can be judged again by a later rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from campaigns.harness.gate import WORST, clears, floor_for, noise_band
from campaigns.harness.report import Finding, Ratio, Report, WorkloadResult


@dataclass(frozen=True)
class Policy:
    """What a keep needs beyond being right."""

    worst_workload: float = WORST
    """No workload may fall below this share of the incumbent's speed, beyond its own interval."""


@dataclass(frozen=True)
class Judgement:
    """``verdict`` is one of the words in docs/harness.md; ``reason`` is a sentence for a person, with the numbers."""

    verdict: str
    reason: str
    speedup: Ratio | None = None
    over_incumbent: Ratio | None = None
    flags: list[Finding] = field(default_factory=list)
    ranges: list[dict[str, Any]] = field(default_factory=list)

    @property
    def band(self) -> list[float] | None:
        return [self.speedup.lo, self.speedup.hi] if self.speedup else None


def judge(report: Report, policy: Policy | None = None, kept_with: Ratio | None = None) -> Judgement:
    """The verdict that the report's evidence bears. ``kept_with``: see ``incumbent_slowed``."""
    policy = policy or Policy()
    blocks = [finding for finding in report.findings if finding.severity == "block"]
    if report.outcome == "infrastructure":
        return Judgement("no_measurement", report.summary, flags=report.findings)
    if blocks:
        reason = f"{blocks[0].rule}: {blocks[0].evidence}"
        return Judgement("flagged", reason, report.speedup, report.over_incumbent, report.findings)
    if report.outcome != "measured":
        return Judgement(report.outcome, report.summary, flags=report.findings)
    if report.over_incumbent is None:
        return Judgement("no_measurement", without_speed(report), report.speedup, flags=report.findings)
    verdict, reason = weigh(report, report.over_incumbent, policy)
    if verdict == "kept" and kept_with is not None and (slowed := incumbent_slowed(report, kept_with)) is not None:
        reason = f"{slowed.rule}: {slowed.evidence}"
        return Judgement("flagged", reason, settled(report), report.over_incumbent, [slowed, *report.findings])
    if verdict in ("reverted", "stacked") and (found := by_range(report, policy)) is not None:
        return found
    return Judgement(verdict, reason, settled(report), report.over_incumbent, report.findings)


INCUMBENT_SLOWED = "incumbent-slowed"
SLOWED = 0.8
"""An incumbent whose speed over the baseline, even at its upper bound, is below this share of what it was kept with (at
the lower bound) ran slower than it can: by its own doing, or by its machine's. Assumed: a baseline's speed may drift."""


def incumbent_slowed(report: Report, kept_with: Ratio) -> Finding | None:
    """Whether the incumbent runs clearly slower than when it was kept. To beat it then says nothing.

    A kernel can be slow on purpose once it is the one to beat (by the clock, by chance), so that its own copy is kept.
    ``kept_with`` is its speed-up over the baseline on the same host.
    """
    speedup, over = report.speedup, report.over_incumbent
    if speedup is None or over is None:
        return None
    now, at_most = speedup.value / over.value, speedup.hi / over.lo
    if at_most >= SLOWED * kept_with.lo:
        return None
    text = (
        f"the incumbent ran at {now:.2f}× over the baseline, and was kept with {kept_with.value:.2f}× "
        f"({kept_with.lo:.2f} to {kept_with.hi:.2f}): it is slower now than it can be, and beating it says nothing"
    )
    data = {"now": now, "at_most": at_most, "kept_with": kept_with.value}
    return Finding(rule=INCUMBENT_SLOWED, severity="block", evidence=text, data=data)


def weigh(report: Report, over: Ratio, policy: Policy) -> tuple[str, str]:
    """Kept, stacked or reverted: what the speed over the incumbent says."""
    floor = floor_for(report.host.kind)
    band = noise_band(report.noise, floor)
    gain = f"{over.value:.3f}× over the incumbent ({over.lo:.3f} to {over.hi:.3f}), noise ±{band:.1%}"
    if over.hi < 1:
        return "reverted", f"slower: {gain}"
    if not clears(over, report.noise, floor=floor):
        return "stacked", f"not told apart from the incumbent: {gain}"
    if slow := [row for row in report.workloads if is_worse(row, policy)]:
        return "reverted", f"faster overall, {gain}; but {describe(slow[0])}"
    confirmation = report.confirmation
    if confirmation is None:
        return "reverted", f"{gain}; it was not confirmed in fresh processes"
    if not confirmation.correct:
        return "incorrect", f"wrong in fresh processes: {confirmation.detail}"
    if not clears(confirmation.over_incumbent, confirmation.noise, floor=floor):
        return "reverted", f"{gain}; but it {confirmation.detail}"
    return "kept", f"{gain}; confirmed in fresh processes"


def by_range(report: Report, policy: Policy) -> Judgement | None:
    """Kept for a range of the swept axis: every workload in it wins beyond its own noise, and so in fresh processes."""
    won, confirmation, floor = report.range, report.confirmation, floor_for(report.host.kind)
    if won is None or confirmation is None or not confirmation.correct:
        return None
    rows = [row for row in report.workloads if row.name in won.workloads]
    if not rows or any(not clears(row.over_incumbent, row.noise, floor=floor) for row in rows):
        return None
    held = clears(confirmation.over_incumbent, confirmation.noise, floor=floor)
    if not held or not clears(won.over_incumbent, won.noise, floor=floor):
        return None
    assert won.over_incumbent is not None
    over = won.over_incumbent
    gain = f"{over.value:.3f}× over the incumbent ({over.lo:.3f} to {over.hi:.3f})"
    reason = f"for {won.axis} from {won.lo:,} to {won.hi:,}: {gain}; confirmed in fresh processes; elsewhere the incumbent stays"
    where = [{"axis": won.axis, "lo": won.lo, "hi": won.hi}]
    return Judgement("kept", reason, both(won.speedup, confirmation.speedup), over, report.findings, where)


def is_worse(row: WorkloadResult, policy: Policy) -> bool:
    """Whether a workload is slower than the incumbent by more than is allowed, beyond doubt."""
    return row.over_incumbent is not None and row.over_incumbent.hi < policy.worst_workload


def describe(row: WorkloadResult) -> str:
    assert row.over_incumbent is not None
    kind = "hidden workload" if row.hidden else "workload"
    return f"{kind} {row.name} is {row.over_incumbent.value:.3f}× ({row.over_incumbent.lo:.3f} to {row.over_incumbent.hi:.3f})"


def settled(report: Report) -> Ratio | None:
    """The speed-up over the baseline: of both measurements, where there are two, from the lowest bound to the highest."""
    return both(report.speedup, report.confirmation.speedup if report.confirmation else None)


def both(first: Ratio | None, second: Ratio | None) -> Ratio | None:
    if first is None or second is None:
        return first
    value = (first.value * second.value) ** 0.5
    return Ratio(value=value, lo=min(first.lo, second.lo), hi=max(first.hi, second.hi))


def without_speed(report: Report) -> str:
    said = next((stage.detail for stage in report.stages if stage.name == "timing"), "")
    if report.speedup is not None:
        return f"right, but there was no kernel to beat: {said}; name an incumbent, or give the problem a start kernel"
    return f"right, but its speed was not measured: {said}" if said else "its speed was not measured"
