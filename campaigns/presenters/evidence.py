"""What one attempt rests on: checks, workloads, stages, host, as the attempt's page and the review show them."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec

from campaigns.harness.report import Report, StageResult
from campaigns.models import Attempt, Measurement
from profiling.kernel_names import readable, short_name

from . import diffs
from .chart import FAILED
from .problem import axes_in_order, baseline_title, checked_only, sweep_axis
from .roofline import roofline
from .standing import count_words, range_words, standing_of

SIGNATURE_CHARS = 60
"""So much of a kernel's name the harness's engagement stage writes into its sentence."""
LONG_LINES = 24
"""Lines of a diff that its pane shows at once, about: longer ones scroll in it, or are shown whole on demand."""

log = logging.getLogger(__name__)


def evidence(attempt: Attempt) -> dict[str, Any]:
    """The context of the parts that an attempt's page and the review share."""
    report, report_error = report_of(attempt)
    rows = list(attempt.measurements.all())
    untimed = untimed_words(attempt, report)
    only_checked = checked_only(attempt.campaign)
    places = axes_in_order(attempt.campaign)
    return {
        "attempt": attempt,
        "campaign": attempt.campaign,
        "standing": standing_of(attempt),
        "report": report,
        "report_error": report_error,
        "measured": attempt.verdict not in FAILED and attempt.speedup is not None,
        "rows": [
            workload_row(row, report, places) | {"untimed": untimed_row(row, only_checked, untimed)} for row in rows
        ],
        "untimed_reason": untimed,
        "timed": any(row.time_us is not None or row.baseline_us is not None for row in rows),
        "tally": (tally := check_tally(rows)),
        "sides": [tally["visible"], tally["hidden"]],
        "stages": [stage_row(stage, report) for stage in report.stages] if report else [],
        "speed_chart": speed_chart(attempt, rows),
        "speed_id": f"speed-{attempt.pk}",
        "roofline": roofline(attempt, rows, report),
        "roofline_id": f"roofline-{attempt.pk}",
        "again": list(attempt.remeasurements.select_related("by")[:5]),
        "range_words": ", ".join(filter(None, map(range_words, attempt.ranges or []))),
        "flags": flags_of(attempt),
        "parameters": sorted(attempt.parameters.items()),
        "baseline_title": baseline_title(attempt.campaign),
    }


def report_of(attempt: Attempt) -> tuple[Report | None, str]:
    """The stored report, or why it cannot be read: an attempt's page never dies of its report."""
    try:
        return attempt.parsed_report(), ""
    except msgspec.MsgspecError as error:
        log.warning("%s: stored report: %s", attempt, error)
        return None, str(error)


def difference(attempt: Attempt, against: str = "incumbent") -> dict[str, Any]:
    """The diff against the incumbent it was measured beside, or against the start kernel."""
    parent = attempt.parent if against != "start" else None
    old = parent.files if parent else attempt.campaign.start_files
    found = diffs.diff_files(old, attempt.files)
    changed = [file for file in found if file.state != "same"]
    lines = sum(len(hunk.lines) for file in changed for hunk in file.hunks)
    return {
        "files": changed,
        "added": sum(file.added for file in changed),
        "removed": sum(file.removed for file in changed),
        "lines": lines,
        "is_long": lines > LONG_LINES,
        "same": [file.path for file in found if file.state == "same"],
        "parent": parent,
        "has_parent": attempt.parent is not None,
        "against": "incumbent" if parent else "start",
    }


def workload_row(row: Measurement, report: Report | None, places: dict[str, int]) -> dict[str, Any]:
    reported = {w.name: w for w in report.workloads}.get(row.workload) if report else None
    ratio = row.error / row.tolerance if row.error is not None and row.tolerance else None
    axes = sorted(row.axes.items(), key=lambda axis: places.get(axis[0], len(places)))
    return {
        "row": row,
        "axes": ", ".join(f"{name} {count_words(value)}" for name, value in axes),
        "error_ratio": ratio,
        "floor_share": row.floor_us / row.time_us if row.floor_us and row.time_us else None,
        "half_band": half(row.speedup_lo, row.speedup_hi),
        "over_half_band": half(row.over_incumbent_lo, row.over_incumbent_hi),
        "labels": reported.labels if reported else [],
    }


def untimed_words(attempt: Attempt, report: Report | None) -> str:
    """Why an attempt has no times: the stage at which its evaluation ended, or what it was sent to a host for."""
    if report is None:
        return ""
    if report.mode == "check":
        return "only correctness was asked for"
    if any(stage.name == "timing" and stage.status == "passed" for stage in report.stages):
        return ""
    ended = next((stage for stage in report.stages if stage.status in ("failed", "error")), None)
    return f"the evaluation ended at {ended.name}" if ended else ""


def untimed_row(row: Measurement, only_checked: set[str], untimed: str) -> str:
    """Why this workload has no time; empty where it, or its baseline, has one."""
    if row.time_us is not None or row.baseline_us is not None:
        return ""
    if row.workload in only_checked:
        return "only checked: the problem does not time it"
    return f"not timed: {untimed}" if untimed else "not timed"


def half(lo: float | None, hi: float | None) -> float | None:
    return (hi - lo) / 2 if lo is not None and hi is not None else None


def check_tally(rows: list[Measurement]) -> dict[str, Any]:
    """Right of all, and the worst error over what is allowed, for visible and hidden workloads apart."""
    tally: dict[str, Any] = {"all": side(rows)}
    tally["visible"] = side([row for row in rows if not row.hidden])
    tally["hidden"] = side([row for row in rows if row.hidden])
    return tally


def side(rows: list[Measurement]) -> dict[str, Any]:
    ratios = [row.error / row.tolerance for row in rows if row.error is not None and row.tolerance]
    checked = [row for row in rows if row.correct is not None]
    right = sum(1 for row in checked if row.correct)
    return {
        "right": right,
        "checked": len(checked),
        "total": len(rows),
        "unchecked": len(rows) - len(checked),
        "all_right": bool(checked) and right == len(checked) == len(rows),
        "worst": max(ratios) if ratios else None,
    }


MARK_OF_STATUS = {"passed": ("✓", "kept"), "failed": ("✕", "bad"), "error": ("!", "bad"), "skipped": ("–", "calm")}


def stage_row(stage: StageResult, report: Report) -> dict[str, Any]:
    mark, tone = MARK_OF_STATUS.get(stage.status, ("?", "calm"))
    text = json.dumps(stage.evidence, indent=2, ensure_ascii=False, default=str) if stage.evidence else ""
    return {"stage": stage, "mark": mark, "tone": tone, "evidence": text, "detail": in_bare_names(stage.detail, report)}


def in_bare_names(detail: str, report: Report) -> str:
    """The sentence with the kernels that ran by their bare names: a stage writes the beginnings of their signatures."""
    for ran in report.engagement:
        signature = str(ran.get("kernel", ""))
        if signature and (bare := short_name(signature)) != signature:
            detail = detail.replace(signature, bare).replace(signature[:SIGNATURE_CHARS], bare)
    return readable(detail)


def flags_of(attempt: Attempt) -> list[dict[str, Any]]:
    """Each flag with the line it points at and the precedents: earlier ones of its rule that people dismissed."""
    found = []
    for flag in attempt.flags.select_related("decided_by", "attempt__campaign"):
        precedents = flag.precedents().select_related("decided_by", "attempt")[:3]
        found.append({"flag": flag, "lines": lines_around(attempt, flag.path, flag.line), "precedents": precedents})
    return found


def lines_around(attempt: Attempt, path: str, line: int | None, margin: int = 1) -> list[tuple[int, str, bool]]:
    """(number, safe HTML, is it the line) of the line and its neighbours; empty where there is no such line."""
    text = attempt.files.get(path)
    if text is None or not line:
        return []
    lines = diffs.source_lines(path, text)
    numbers = range(max(1, line - margin), min(len(lines), line + margin) + 1)
    return [(n, lines[n - 1], n == line) for n in numbers] if line <= len(lines) else []


def speed_chart(attempt: Attempt, rows: list[Measurement]) -> dict[str, Any] | None:
    """Speed-up by workload with intervals. x is the swept axis, to be drawn on a log axis, or the workload's name."""
    if attempt.verdict in FAILED:
        return None
    measured = [row for row in rows if row.speedup is not None]
    if not measured:
        return None
    sweep = sweep_axis(attempt.campaign)
    values = [row.axes.get(sweep) for row in measured] if sweep else []
    swept = len({v for v in values if v}) == len(values) >= 2
    if swept:
        measured.sort(key=lambda row: row.axes[sweep])
    bars = [
        {
            "x": row.axes[sweep] if swept else None,
            "label": count_words(row.axes[sweep]) if swept else row.workload,
            "name": row.workload,
            "hidden": row.hidden,
            "s": row.speedup,
            "lo": row.speedup_lo,
            "hi": row.speedup_hi,
        }
        for row in measured
    ]
    return {
        "bars": bars,
        "axis": sweep if swept else "workload",
        "log": swept,
        "tone": "kept" if (standing := standing_of(attempt)).is_winner else standing.tone,
        "baseline": baseline_title(attempt.campaign),
    }
