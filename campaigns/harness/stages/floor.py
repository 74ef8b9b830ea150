"""Step 7: no call may be faster than this host can move its bytes or do its arithmetic."""

from __future__ import annotations

import re
from typing import Any

from ..problem import Problem, Workload
from ..report import Finding
from .base import Evaluation, Skip

SLACK, SLACK_CPU = 0.999, 0.7
"""A core's figures depend on what its neighbours do: only what is far below the floor is beyond belief there."""
BANDWIDTHS = ("copy_bytes_per_s", "read_bytes_per_s")
CACHED_PART = 16
_AT_SIZE = re.compile(r"(?:copy|read)_at_(\d+)_bytes_per_s")


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
            slack = SLACK if evaluation.gpu else SLACK_CPU
            if cold and floor_us is not None and time_us is not None and time_us < slack * floor_us:
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
    nbytes = problem.floor_value("bytes", workload)
    bandwidth = bandwidth_for(nbytes or 0.0, peaks)
    rates = [f"{workload.dtype}_flop_per_s", *(["tf32_flop_per_s"] if workload.dtype == "float32" else [])]
    rate = max((peaks[key] for key in rates if peaks.get(key)), default=0.0)
    times = []
    for kind, peak in (("bytes", bandwidth), ("flop", rate)):
        amount = nbytes if kind == "bytes" else problem.floor_value(kind, workload)
        if amount is not None and peak:
            times.append(amount / peak * 1e6)
    return max(times, default=None)


def bandwidth_for(nbytes: float, peaks: dict[str, float]) -> float:
    """The highest bandwidth that a call on so many bytes can have. Of a core it is known by size: what fits a cache moves
    faster, so of the sizes from a sixteenth of the call's on the fastest counts: a part of it may come from a cache."""
    by_size = {key: int(found[1]) for key in peaks if (found := _AT_SIZE.fullmatch(key))}
    if not by_size:
        return max((peaks[key] for key in BANDWIDTHS if peaks.get(key)), default=0.0)
    smallest = min(nbytes, max(by_size.values())) / CACHED_PART
    below = max((size for size in by_size.values() if size <= smallest), default=0)
    return max(peaks[key] for key, size in by_size.items() if size >= below)
