"""Step 7: no call may be faster than this host can move its bytes or do its arithmetic."""

from __future__ import annotations

from typing import Any

from ..problem import Problem, Workload
from ..report import Finding
from .base import Evaluation, Skip

SLACK = 0.999


class Floor:
    name = "floor"

    def __init__(self, peaks: dict[str, float] | None = None) -> None:
        self.peaks = peaks or {}

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        if not self.peaks:
            raise Skip("the peaks of this host are not known, and none are invented")
        below = []
        for workload in evaluation.workloads:
            floor_us = floor_of(evaluation.problem, workload, self.peaks)
            evaluation.update(workload.name, floor_us=floor_us)
            time_us = evaluation.results[workload.name].time_us
            if floor_us is not None and time_us is not None and time_us < SLACK * floor_us:
                below.append(workload.name)
                evaluation.add_finding(
                    Finding(
                        rule="below-floor",
                        severity="block",
                        evidence=f"{workload.name}: {time_us:.2f} µs, and this host needs at least {floor_us:.2f} µs",
                        data={"time_us": time_us, "floor_us": floor_us},
                    )
                )
        text = f"below the floor on {', '.join(below)}" if below else "no call is faster than the host can be"
        return text, {"peaks": self.peaks, "below": below}


def floor_of(problem: Problem, workload: Workload, peaks: dict[str, float]) -> float | None:
    """max(bytes ÷ bandwidth, operations ÷ rate) in µs, of what is known; None where nothing is."""
    times = []
    for kind, peak in (("bytes", "copy_bytes_per_s"), ("flop", f"{workload.dtype}_flop_per_s")):
        amount = problem.floor_value(kind, workload)
        if amount is not None and peaks.get(peak):
            times.append(amount / peaks[peak] * 1e6)
    return max(times, default=None)
