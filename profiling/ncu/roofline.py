"""The roofline: arithmetic intensity (FLOP/byte of DRAM traffic) against FLOP/s, under the roofs of this GPU.

All figures are at the clocks of the measured launch, as in Nsight Compute's roofline sections: peak work per cycle
times cycles per second, peak DRAM bytes per cycle times DRAM cycles per second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profiling.ncu.metrics import DRAM_BYTES_PER_S, Metrics, NotCollected

MISSING = NotCollected(
    "roofline", "--section SpeedOfLight_RooflineChart --section SpeedOfLight_HierarchicalTensorRooflineChart"
)
CLOCK_HZ = "smsp__cycles_elapsed.avg.per_second"
SM_CLOCK_HZ = "sm__cycles_elapsed.avg.per_second"
PRECISIONS = {"fp32": ("fadd", "fmul", "ffma"), "fp64": ("dadd", "dmul", "dfma"), "fp16": ("hadd", "hmul", "hfma")}
WORK_PER_INSTRUCTION = {"fp32": 1, "fp64": 1, "fp16": 2}
"""A half-precision instruction works on a packed pair."""
TENSOR = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<type>\w+?)(_sparsity_(?P<sparse>on|off))?\.sum\.per_second$"
)
MIN_SHARE = 0.01
"""A pipe with less than this share of the kernel's work gets no point of its own."""


@dataclass(frozen=True)
class Roof:
    name: str
    flops: float
    """Peak in FLOP/s."""


@dataclass(frozen=True)
class Point:
    name: str
    intensity: float
    """FLOP per byte of DRAM traffic."""
    flops: float
    roof: str

    def attainable(self, roofline: Roofline) -> float:
        peak = next((r.flops for r in roofline.roofs if r.name == self.roof), self.flops)
        return min(peak, self.intensity * roofline.bytes_per_s_peak)


@dataclass(frozen=True)
class Roofline:
    """``bytes_per_s``: DRAM traffic of the kernel, ``bytes_per_s_peak`` that of the GPU at its clock."""

    bytes_per_s: float
    bytes_per_s_peak: float
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...] = field(default_factory=tuple)

    @property
    def sentence(self) -> str:
        if not self.points:
            share = self.bytes_per_s / self.bytes_per_s_peak
            return f"No floating-point work was counted; DRAM runs at {100 * share:.1f} % of its roof."
        point = self.points[0]
        ceiling = point.attainable(self)
        slope = point.intensity * self.bytes_per_s_peak
        side = "memory" if slope <= ceiling else "compute"
        return (
            f"{point.name}: {point.intensity:.3g} FLOP/byte lies under the {side} roof and reaches "
            f"{100 * point.flops / ceiling:.1f} % of it."
        )


def roofline(metrics: Metrics) -> Roofline | None:
    """None where the roofline sections were not collected."""
    traffic, peak_bytes = metrics.number(DRAM_BYTES_PER_S), metrics.number("dram__bytes.sum.peak_sustained")
    dram_hz = metrics.number("dram__cycles_elapsed.avg.per_second")
    if not peak_bytes or not dram_hz or traffic is None:
        return None
    found = [*vector_work(metrics), *tensor_work(metrics)]
    if not found:
        return None
    whole = sum(flops for _, flops, _ in found)
    points = [
        Point(name, flops / traffic, flops, name)
        for name, flops, _ in sorted(found, key=lambda item: -item[1])
        if traffic > 0 and flops > MIN_SHARE * whole
    ]
    shown = {point.roof for point in points}
    roofs = [Roof(name, peak) for name, _, peak in found if name in shown or name == "fp32"]
    return Roofline(traffic, peak_bytes * dram_hz, tuple(sorted(roofs, key=lambda r: -r.flops)), tuple(points))


def vector_work(metrics: Metrics) -> list[tuple[str, float, float]]:
    """(precision, FLOP/s, peak FLOP/s) of the ordinary pipes; a fused multiply-add is two operations."""
    clock = metrics.number(CLOCK_HZ) or metrics.number(SM_CLOCK_HZ)
    if not clock:
        return []
    result = []
    for name, (add, multiply, fused) in PRECISIONS.items():
        width = WORK_PER_INSTRUCTION[name]
        counts = [
            metrics.number(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed")
            for op in (add, multiply, fused)
        ]
        peak = metrics.number(f"sm__sass_thread_inst_executed_op_{fused}_pred_on.sum.peak_sustained")
        if None in counts or not peak:
            continue
        adds, multiplies, fuseds = (count or 0.0 for count in counts)
        result.append((name, (adds + multiplies + 2 * fuseds) * width * clock, 2 * width * peak * clock))
    return result


def tensor_work(metrics: Metrics) -> list[tuple[str, float, float]]:
    """(instruction and type, FLOP/s, peak FLOP/s) of the tensor pipe, each against the peak of its own instruction.

    Metrics over all instructions of a source type carry the sparse peak, twice what dense work can reach: they serve
    only for types that have no metric by instruction.
    """
    matches = [match for name in metrics.values if (match := TENSOR.match(name))]
    by_instruction = {source_type(match["type"]) for match in matches if match["op"]}
    result = []
    for match in matches:
        if not match["op"] and source_type(match["type"]) in by_instruction:
            continue
        rate = metrics.number(match.group())
        peak = metrics.number(f"{match.group().removesuffix('.per_second')}.peak_sustained_elapsed.per_second")
        if rate and peak:
            sparse = ", sparse" if match["sparse"] == "on" else ""
            words = match["type"].replace("_dst_", " → ")
            result.append((f"tensor {match['op'] + ' ' if match['op'] else ''}{words}{sparse}", rate, peak))
    return result


def source_type(words: str) -> str:
    return words.partition("_dst_")[0]
