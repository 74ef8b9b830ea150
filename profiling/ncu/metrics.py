"""Metrics of one launch, by their Nsight Compute names; and what to rerun where one was not collected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DURATION_NS = "gpu__time_duration.sum"
SM_PERCENT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PERCENT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_PERCENT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L1_PERCENT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_PERCENT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
WARPS_ACTIVE_PERCENT = "sm__warps_active.avg.pct_of_peak_sustained_active"
WARPS_POSSIBLE_PERCENT = "sm__maximum_warps_per_active_cycle_pct"
WAVES = "launch__waves_per_multiprocessor"
REGISTERS = "launch__registers_per_thread"
GRID_SIZE, BLOCK_SIZE, SM_COUNT = "launch__grid_size", "launch__block_size", "launch__sm_count"
SHARED_BYTES = "launch__shared_mem_per_block"
DYNAMIC_SHARED_BYTES = "launch__shared_mem_per_block_dynamic"
STATIC_SHARED_BYTES = "launch__shared_mem_per_block_static"
DRAM_BYTES_PER_S = "dram__bytes.sum.per_second"
DEVICE_NAME = "device__attribute_display_name"

SUMMARY = (
    DURATION_NS,
    SM_PERCENT,
    MEMORY_PERCENT,
    DRAM_PERCENT,
    WARPS_ACTIVE_PERCENT,
    WARPS_POSSIBLE_PERCENT,
    WAVES,
    REGISTERS,
)
"""What the list of launches needs of each one."""


@dataclass(frozen=True)
class NotCollected:
    """A state, not a zero: what is missing, and the options of `ncu` that would collect it."""

    what: str
    options: str

    @property
    def sentence(self) -> str:
        return f"{self.what} not collected: rerun with `ncu {self.options}`"


class Metrics:
    """Typed look-ups. A metric that was not collected, or is text where a number is wanted, is None."""

    def __init__(self, values: Mapping[str, int | float | str]) -> None:
        self.values = values

    def number(self, name: str) -> float | None:
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) else None

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def total(self, *names: str) -> float | None:
        """The sum; None where any of them was not collected."""
        numbers = [self.number(name) for name in names]
        return None if None in numbers else sum(n for n in numbers if n is not None)


UNITS = (
    (r"pct(_of_peak_\w+)?$|_pct$", "%"),
    (r"__time_duration\.", "ns"),
    (r"cycles_elapsed\.\w+\.per_second$", "hz"),
    (r"(^|_)bytes(_(read|write))?(_\w+)?\.\w+\.per_second$", "byte/s"),
    (r"sectors(_\w+)?\.\w+\.per_second$", "sector/s"),
    (r"^dram__bytes\.\w+\.peak_sustained$", "byte/cycle"),
    (r"inst_(executed|issued)(_\w+)?\.\w+\.per_cycle_(active|elapsed)$", "inst/cycle"),
    (r"cycles_(active|elapsed)\.(avg|sum|min|max)$", "cycle"),
    (r"^dram__bytes_(read|write)\.\w+$", "byte"),
    (r"^launch__registers_per_thread", "register/thread"),
    (r"^launch__shared_mem_per_block", "byte/block"),
    (r"^launch__occupancy_limit_", "block"),
    (r"^launch__thread_count$", "thread"),
    (r"^sm__warps_active\.\w+\.per_cycle_active$", "warp"),
    (r"^smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio$", "inst"),
    (r"average_data_bytes_per_sector_\w+\.(ratio|max_rate)$", "byte/sector"),
)
"""A report stores no units; these follow from NVIDIA's naming scheme. No unit is better than a wrong one."""


def unit(name: str) -> str:
    """The metric's unit as Nsight Compute writes it, or an empty string where the name does not tell it."""
    if name.startswith(("derived_", "breakdown:", "group:")):
        return ""
    return next((word for pattern, word in UNITS if re.search(pattern, name)), "")
