"""The Stack page: a waterfall from the true baseline through each kernel to now and to the floor."""

from __future__ import annotations

from typing import Any

import msgspec

from campaigns.models import StackMeasurement, StackState
from campaigns.scenarios import catalogue, stacking
from campaigns.scenarios.request import StackReport


def scenarios() -> list[dict[str, Any]]:
    """Each scenario with its latest report, what is under way, and what came before."""
    return [scenario(name) for name in catalogue.names()]


def scenario(name: str) -> dict[str, Any]:
    told = catalogue.find(name)
    rows = StackMeasurement.objects.filter(scenario=name).select_related("by")
    latest = rows.filter(state=StackState.DONE, tried=None).first()
    report = latest.parsed_report() if latest else None
    return {
        "name": name,
        "title": told.problem.title,
        "summary": told.problem.summary,
        "workload": told.workload,
        "axes": list(told.workload.axes.items()),
        "operators": list(told.operators.items()),
        "latest": latest,
        "report": report,
        "waterfall": waterfall(report) if report else None,
        "waterfall_id": f"waterfall-{name}",
        "rows": rows_of(report) if report else [],
        "explained": explained(report) if report else None,
        "left_out": left_out(latest, report) if latest and report else [],
        "offered": (offered := stacking.offered(told)),
        "combinable": len({kernel.operator for _, kernel in offered}) > 1,
        "can_measure": bool(stacking.hardware_for(told)),
        "trials": trials(name),
        "waiting": rows.filter(state=StackState.WAITING).first(),
        "history": rows[:10],
    }


def trials(name: str) -> list[dict[str, Any]]:
    """The latest combinations that were tried, each with its report."""
    rows = StackMeasurement.objects.filter(scenario=name, state=StackState.DONE).exclude(tried=None).distinct()
    found = [(row, row.parsed_report()) for row in rows.select_related("by").prefetch_related("tried__campaign")[:5]]
    return [
        {"row": row, "trial": report.trial, "report": report, "attempts": list(row.tried.all())}
        for row, report in found
        if report is not None and report.trial is not None
    ]


def waterfall(report: StackReport) -> dict[str, Any]:
    """Bars in µs: levels (baseline, now, floor) and the falls between them."""
    bars = [{"label": f"true baseline: {report.base}", "kind": "level", "us": report.base_us}]
    before = report.base_us
    for stage in report.stages:
        kind = "flag" if stage.flag else ("saved" if stage.time_us <= before else "lost")
        gain = {"gain": stage.gain.value, "lo": stage.gain.lo, "hi": stage.gain.hi, "limit": stage.limit}
        bars.append({"label": stage.label, "kind": kind, "from": before, "us": stage.time_us, **gain})
        before = stage.time_us
    bars.append({"label": "now", "kind": "level", "us": report.now_us})
    if report.floor_us:
        bars.append({"label": "hardware limit", "kind": "floor", "us": report.floor_us})
    return {"scenario": report.scenario, "bars": bars}


def rows_of(report: StackReport) -> list[dict[str, Any]]:
    """The table's rows: the baseline, then each stage, with its share of the machine's bandwidth and arithmetic."""
    base: dict[str, Any] = {"label": f"true baseline: {report.base}", "time_us": report.base_us, "stage": None}
    stages = [{"label": f"+ {stage.label}", "time_us": stage.time_us, "stage": stage} for stage in report.stages]
    return [row | shares(report, row["time_us"]) for row in [base, *stages]]


def left_out(row: StackMeasurement, report: StackReport) -> list[dict[str, str]]:
    """Approved kernels that are not in the stack: those that do not serve at these axes, and those that failed here."""
    return [*row.not_here, *msgspec.to_builtins(report.left_out)]


def shares(report: StackReport, time_us: float) -> dict[str, float | None]:
    """None where the machine's peak is not known: none is invented."""
    rate = next((value for key, value in report.peaks.items() if key.endswith("_flop_per_s")), None)
    pairs = {
        "bandwidth": (report.bytes_per_step, report.peaks.get("copy_bytes_per_s")),
        "mfu": (report.flop_per_step, rate),
    }
    return {name: amount / peak / time_us * 1e6 if amount and peak else None for name, (amount, peak) in pairs.items()}


def explained(report: StackReport) -> dict[str, float] | None:
    """The gains together, against what their operators could have given at most."""
    if not report.stages:
        return None
    limit = 1.0
    for stage in report.stages:
        limit *= stage.limit
    saved_us = report.base_us - report.now_us
    return {"saved_us": saved_us, "lost_us": -saved_us, "together": report.stages[-1].over_base.value, "limit": limit}
