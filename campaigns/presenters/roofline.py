"""The roofline of one attempt: how many operations a second, over how many operations a byte, under the host's own roof."""

from __future__ import annotations

from typing import Any

from campaigns.harness.errors import ProblemError
from campaigns.harness.expressions import ExpressionError
from campaigns.harness.problem import Problem, load_problem
from campaigns.harness.report import Report
from campaigns.harness.stages.floor import bandwidth_for
from campaigns.models import Attempt, Measurement

from .chart import FAILED
from .standing import standing_of


def roofline(attempt: Attempt, rows: list[Measurement], report: Report | None) -> dict[str, Any] | None:
    """A dot a workload for the candidate and one for its incumbent, in flop/s over flop/byte; None where nothing was
    timed. ``roofs`` are measured peaks only: ``why`` says what is missing, and none is invented."""
    timed = [row for row in rows if row.time_us]
    peaks = report.host.peaks if report else {}
    if attempt.verdict in FAILED or not timed:
        return None
    try:
        problem = load_problem(attempt.campaign.problem_files)
        dots = [dot for row in timed if (dot := dot_of(problem, row, peaks))]
    except (ProblemError, ExpressionError):
        return None
    dtypes = sorted({dot["dtype"] for dot in dots})
    return {
        "dots": dots,
        "bandwidths": sorted({dot["bandwidth"] for dot in dots if dot["bandwidth"]}),
        "roofs": {dtype: rate for dtype in dtypes if (rate := rate_of(dtype, peaks))},
        "why": missing(dots, peaks, dtypes),
        "tone": standing_of(attempt).tone,
        "host": report.host.kind if report else "",
    }


def dot_of(problem: Problem, row: Measurement, peaks: dict[str, float]) -> dict[str, Any] | None:
    """``bandwidth`` is what memory gives a call of this size at most: of a core it is more where the data fit a
    cache. None where the workload is unknown, or the problem does not say what a call moves and computes."""
    workload = next((w for w in problem.workloads if w.name == row.workload), None)
    if workload is None:
        return None
    amount, flop = problem.floor_value("bytes", workload), problem.floor_value("flop", workload)
    if not amount or not flop or not row.time_us:
        return None
    return {
        "name": row.workload,
        "dtype": workload.dtype,
        "hidden": row.hidden,
        "x": flop / amount,
        "y": flop / row.time_us * 1e6,
        "before": flop / row.incumbent_us * 1e6 if row.incumbent_us else None,
        "bandwidth": bandwidth_for(amount, peaks) or None,
    }


def rate_of(dtype: str, peaks: dict[str, float]) -> float | None:
    """The peak of a dtype, as the floor takes it: ``bfloat16_flop_per_s``; for float32 that of TF32 where it is higher."""
    names = [f"{dtype}_flop_per_s", *(["tf32_flop_per_s"] if dtype == "float32" else [])]
    return max((peaks[name] for name in names if peaks.get(name)), default=None)


def missing(dots: list[dict[str, Any]], peaks: dict[str, float], dtypes: list[str]) -> str:
    if not dots:
        return "The problem does not say how many bytes and operations a call takes, so there is no dot."
    if not any(dot["bandwidth"] for dot in dots):
        return "The peaks of this host are not measured: dots without a roof, and none is invented."
    without = [dtype for dtype in dtypes if not rate_of(dtype, peaks)]
    if without:
        return f"The arithmetic peak of {', '.join(without)} is not measured on this host: only the slope of memory is drawn."
    return ""
