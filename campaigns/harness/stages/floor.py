"""Step 7: no call may be faster than this host can move its bytes or do its arithmetic."""

from __future__ import annotations

from typing import Any

from ..problem import Problem, Workload
from ..report import Finding
from .base import Evaluation, Skip

SLACK = 0.999
BANDWIDTHS = ("copy_bytes_per_s", "read_bytes_per_s")


class Floor:
    name = "floor"

    def __init__(self, peaks: dict[str, float] | None = None) -> None:
        self.peaks = peaks or {}

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        self.peaks = self.peaks or evaluation.peaks
        if not self.peaks:
            raise Skip("the peaks of this host are not known, and none are invented")
        below = []
        for workload in evaluation.workloads:
            floor_us = floor_of(evaluation.problem, workload, self.peaks)
            evaluation.update(workload.name, floor_us=floor_us)
            time_us = evaluation.results[workload.name].time_us
            cold = "warm-cache" not in evaluation.results[workload.name].labels
            if cold and floor_us is not None and time_us is not None and time_us < SLACK * floor_us:
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
    """max(bytes ÷ bandwidth, operations ÷ rate) in µs, of what is known; None where nothing is.

    A ceiling must be one that nothing honest passes: of several measured ones the highest counts (reading alone is
    faster than copying, and a float32 product may lawfully run as TF32 where the tolerance lets it).
    """
    bandwidth = max((peaks[key] for key in BANDWIDTHS if peaks.get(key)), default=0.0)
    rates = [f"{workload.dtype}_flop_per_s", *(["tf32_flop_per_s"] if workload.dtype == "float32" else [])]
    rate = max((peaks[key] for key in rates if peaks.get(key)), default=0.0)
    times = []
    for kind, peak in (("bytes", bandwidth), ("flop", rate)):
        amount = problem.floor_value(kind, workload)
        if amount is not None and peak:
            times.append(amount / peak * 1e6)
    return max(times, default=None)
