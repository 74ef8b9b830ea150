"""What of an evaluation an agent may know: never a hidden workload's name, axes or values, nor text by which a
candidate could carry them out.

A candidate sees hidden inputs while it runs, and can put what it saw into an exception or a printed line. So once a
hidden workload was begun, no text that a candidate can shape leaves; what the harness says of visible workloads does.
Not covered: numbers. A candidate can still make its own time or error depend on what it saw, a few bits an attempt.
"""

from __future__ import annotations

import builtins
import math
import re
import signal
from collections.abc import Iterable
from typing import Any

from campaigns.harness.report import Report, StageResult, WorkloadResult
from campaigns.models import Attempt

HIDDEN = "a hidden workload"
BEFORE_ANY_CALL = ("scan", "build")
SHAPED_BY_CANDIDATES = ("launch_failed", "out_of_memory")
"""Outcomes whose sentence may be the last line of an exception."""
KINDS = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
KINDS |= {each.name for each in signal.Signals}


class Redactor:
    """Cleans the texts of one report. ``hidden`` maps the hidden workloads' names to their axes."""

    def __init__(self, report: Report, hidden: dict[str, dict[str, int]] | None = None) -> None:
        self.report = report
        self.hidden = {row.name: row.axes for row in report.workloads if row.hidden} | (hidden or {})
        self.touched = any(row.hidden and was_begun(row) for row in report.workloads)

    def scrub(self, text: str) -> str:
        """The text without names and axes of hidden workloads."""
        for name, axes in sorted(self.hidden.items(), key=lambda item: -len(item[0])):
            named = rf"(?:(?:a )?hidden workload )?(?<![\w.-]){re.escape(name)}(?![\w.-])"
            text = re.sub(named, HIDDEN, text)
            for axis, value in axes.items():
                spelled = f"(?:{value}|{value:,})"
                text = re.sub(rf"\b{re.escape(axis)}\b(\s*[=:]\s*){spelled}(?![\d,]*\d)", rf"{axis}\1?", text)
        return re.sub(r"\bhidden workload \d+", HIDDEN, text)

    def mentions(self, text: str) -> bool:
        return self.scrub(text) != text or HIDDEN in text

    def stage(self, stage: StageResult) -> str:
        """The stage's sentence as an agent may read it."""
        if stage.name in BEFORE_ANY_CALL or not self.touched:
            return self.scrub(stage.detail)
        if stage.status in ("passed", "skipped"):
            return self.scrub(stage.detail)
        return self.failure(stage)

    def failure(self, stage: StageResult) -> str:
        outcome = self.report.outcome.replace("_", " ") + kind_of(stage.detail)
        row = self.failed_row(stage.detail)
        if row is None:
            return f"{outcome} during {stage.name}"
        if row.hidden:
            return f"{outcome} on {HIDDEN}; which one, and more, is not told"
        if self.report.outcome in SHAPED_BY_CANDIDATES:
            return f"{row.name}: {outcome}; its message is withheld, since hidden workloads had run in the same process"
        return self.scrub(stage.detail)

    def failed_row(self, detail: str) -> WorkloadResult | None:
        """The workload that a failure is about: the one found wrong, else the one that the sentence begins with."""
        for row in self.report.workloads:
            if row.correct is False or detail.startswith(f"{row.name}:"):
                return row
        if self.mentions(detail):
            return next((row for row in self.report.workloads if row.hidden), None)
        return None

    def reason(self, text: str) -> str:
        """A verdict's reason or the report's summary; where it repeats a failed stage, with that stage's words."""
        for finding in self.report.findings:
            if finding.evidence and finding.evidence in text:
                return self.scrub(text.replace(finding.evidence, self.evidence(finding.evidence)))
        for stage in self.report.stages:
            if stage.status in ("failed", "error") and stage.detail and stage.detail in text:
                return self.scrub(text.replace(stage.detail, self.stage(stage)))
        if self.touched and self.report.outcome in SHAPED_BY_CANDIDATES:
            return f"{self.report.outcome.replace('_', ' ')}; the message is withheld, since hidden workloads had run"
        return self.scrub(text)

    def evidence(self, text: str) -> str:
        """A finding's sentence. One about a hidden workload holds its numbers, and is cut whole."""
        return f"seen on {HIDDEN}" if self.mentions(text) else text

    def output(self) -> str | None:
        """What the candidate printed; None where it could tell of hidden inputs."""
        return None if self.touched else self.report.output


def kind_of(detail: str) -> str:
    """What a failure is called, where that is one of Python's own exceptions or a signal: a name nobody can shape."""
    found = next((word for word in re.findall(r"[A-Za-z]+", detail) if word in KINDS), "")
    return f" ({found})" if found else ""


def was_begun(row: WorkloadResult) -> bool:
    return row.correct is not None or row.time_us is not None or bool(row.detail)


def reason_of(attempt: Attempt) -> str:
    """Why the verdict is what it is, as an agent may read it."""
    report = attempt.parsed_report()
    return Redactor(report).reason(attempt.reason) if report else attempt.reason


def aggregate(rows: Iterable[WorkloadResult]) -> dict[str, Any]:
    """The hidden workloads as counts and one mean: enough to know whether a kernel holds, too little to tune to."""
    hidden = [row for row in rows if row.hidden]
    gains = [row.speedup.value for row in hidden if row.speedup is not None and row.speedup.value > 0]
    return {
        "count": len(hidden),
        "right": sum(row.correct is True for row in hidden),
        "wrong": sum(row.correct is False for row in hidden),
        "not_checked": sum(row.correct is None for row in hidden),
        "timed": len(gains),
        "speedup": math.exp(sum(map(math.log, gains)) / len(gains)) if gains else None,
    }


def visible_ranges(ranges: list[dict[str, Any]], rows: Iterable[WorkloadResult]) -> list[dict[str, Any]]:
    """Ranges of a win, drawn in to the visible workloads at their ends. One that holds none of them is left out."""
    found = []
    visible = [row for row in rows if not row.hidden]
    for item in ranges:
        values = [row.axes[item["axis"]] for row in visible if item.get("axis") in row.axes]
        lo, hi = item.get("lo"), item.get("hi")
        inside = [v for v in values if (lo is None or v >= lo) and (hi is None or v <= hi)]
        if inside:
            found.append({"axis": item["axis"], "lo": min(inside), "hi": max(inside)})
    return found
