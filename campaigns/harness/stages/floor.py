"""Step 7: no call may be faster than this host can move its bytes or do its arithmetic."""

from __future__ import annotations

import re
from typing import Any

from ..problem import Problem, Workload
from ..report import Finding
from .base import Evaluation, Skip

SLACK, SLACK_CPU = 0.999, 0.7
"""A core's figures depend on what its neighbours do: only what is far below the floor is beyond belief there."""
BANDWIDTH_DOUBT, RATE_DOUBT = 1.15, 1.25
"""How much faster than our own copies and products somebody else's may be. On an H200 an honest kernel read 4.38 TB/s where
our read reached 4.31 (docs/results/h200-first-campaigns.md), and products of easier values ran 14 % faster. Where the
memory's clock is known, that is the bound on bandwidth: nothing passes it."""
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
            if floor_us is None or time_us is None or "warm-cache" in evaluation.results[workload.name].labels:
                continue
            bound_us = bound_of(evaluation.problem, workload, self.peaks) if evaluation.gpu else SLACK_CPU * floor_us
            if finding := judged(workload.name, time_us, floor_us, bound_us or 0.0, gpu=bool(evaluation.gpu)):
                evaluation.add_finding(finding)
                below += [workload.name] if finding.severity == "block" else []
        text = f"below the floor on {', '.join(below)}" if below else "no call is faster than the host can be"
        return text, {"peaks": self.peaks, "below": below}


def judged(name: str, time_us: float, floor_us: float, bound_us: float, gpu: bool) -> Finding | None:
    """Below what is possible at all it blocks; between that and what we measured ourselves it is worth a look."""
    data = {"time_us": time_us, "floor_us": floor_us, "bound_us": bound_us}
    if time_us < SLACK * bound_us:
        told = f"{name}: {time_us:.2f} µs, and this host needs at least {bound_us:.2f} µs"
        return Finding(rule="below-floor", severity="block", evidence=told, data=data)
    if gpu and time_us < SLACK * floor_us:
        told = f"{name}: {time_us:.2f} µs; our own probe would need {floor_us:.2f} µs, the hardware {bound_us:.2f} µs"
        return Finding(rule="beats-our-probe", severity="note", evidence=told, data=data)
    return None


def bound_of(problem: Problem, workload: Workload, peaks: dict[str, float]) -> float | None:
    """What no kernel on a GPU can undercut, in µs: by the memory's clock where it is known, and our products with room."""
    doubted = {key: value * RATE_DOUBT for key, value in peaks.items() if key.endswith("_flop_per_s")}
    bandwidth = peaks.get("memory_clock_bytes_per_s") or BANDWIDTH_DOUBT * bandwidth_for(0.0, peaks)
    return floor_of(problem, workload, {**doubted, "read_bytes_per_s": bandwidth})


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
