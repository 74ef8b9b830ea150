"""What a check of a problem finds: reasons to refuse it, and notes."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec


class Reason(msgspec.Struct, kw_only=True):
    """Why a problem is refused, at which workloads, and what to do."""

    rule: str
    what: str
    do: str
    workloads: list[str] = []


class ProblemReport(msgspec.Struct, kw_only=True):
    """``checked`` and ``left_out`` name workloads; a problem without reasons is taken."""

    name: str
    title: str
    reasons: list[Reason]
    notes: list[str]
    checked: list[str]
    left_out: dict[str, str]
    kernels: dict[str, str]
    """Start kernels and baselines: what was found of each, in words."""
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.reasons


@dataclass
class Findings:
    """Collected as the check goes. One rule about one subject is one reason, whatever the number of workloads."""

    reasons: dict[tuple[str, str], Reason] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)

    def refuse(self, rule: str, subject: str, what: str, do: str, workload: str = "") -> None:
        """The figures in ``what`` are those of the first workload at which it was seen."""
        reason = self.reasons.setdefault((rule, subject), Reason(rule=rule, what=what, do=do, workloads=[]))
        if workload and workload not in reason.workloads:
            reason.workloads.append(workload)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def report(self, name: str, title: str, seconds: float) -> ProblemReport:
        return ProblemReport(
            name=name,
            title=title,
            reasons=list(self.reasons.values()),
            notes=self.notes,
            checked=self.checked,
            left_out=self.left_out,
            kernels=self.kernels,
            seconds=round(seconds, 1),
        )
