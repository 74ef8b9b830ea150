"""What stands out in one kernel, with figures. A rule returns a remark or None; a new one is one more in RULES."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from profiling.ncu import stalls
from profiling.ncu.labels import LATENCY_PERCENT, label
from profiling.ncu.metrics import (
    DRAM_PERCENT,
    GRID_SIZE,
    L1_PERCENT,
    L2_PERCENT,
    MEMORY_PERCENT,
    SM_COUNT,
    WAVES,
    Metrics,
)
from profiling.ncu.occupancy import occupancy

LOW_OCCUPANCY_PERCENT = 50.0
MANY_WAVES = 8
MIN_EXCESS, MIN_STALL_SHARE = 0.10, 0.40


@dataclass(frozen=True)
class Remark:
    """``saving`` is the share of the kernel's time that acting on it could save at the most."""

    rule: str
    title: str
    evidence: str
    saving: float


def uncoalesced(metrics: Metrics) -> Remark | None:
    """More 32-byte sectors moved than the bytes asked for need."""
    sectors = metrics.number("memory_l2_theoretical_sectors_global")
    ideal = metrics.number("memory_l2_theoretical_sectors_global_ideal")
    if not sectors or ideal is None or (excess := (sectors - ideal) / sectors) < MIN_EXCESS:
        return None
    evidence = (
        f"{sectors - ideal:,.0f} of {sectors:,.0f} sectors to global memory are not needed: neighbouring threads do "
        f"not touch neighbouring bytes. Load by rows, or stage through shared memory."
    )
    return Remark("uncoalesced", f"Uncoalesced access: {100 * excess:.0f} % of the sectors are waste", evidence, excess)


def bank_conflicts(metrics: Metrics) -> Remark | None:
    wavefronts = metrics.number("memory_l1_wavefronts_shared")
    ideal = metrics.number("memory_l1_wavefronts_shared_ideal")
    if not wavefronts or ideal is None or (excess := (wavefronts - ideal) / wavefronts) < MIN_EXCESS:
        return None
    evidence = (
        f"{wavefronts - ideal:,.0f} of {wavefronts:,.0f} passes through shared memory come from several threads of a "
        f"warp on one bank: pad or swizzle the layout."
    )
    return Remark("bank-conflicts", f"Bank conflicts: {100 * excess:.0f} % of shared-memory passes", evidence, excess)


def small_grid(metrics: Metrics) -> Remark | None:
    blocks, sms = metrics.number(GRID_SIZE), metrics.number(SM_COUNT)
    if not blocks or not sms or blocks >= sms:
        return None
    evidence = (
        f"{blocks:,.0f} block{'s' if blocks > 1 else ''} for {sms:,.0f} multiprocessors: the others stand empty. "
        f"Split the work finer, fuse it with its neighbours, or run it beside other kernels."
    )
    return Remark(
        "small-grid", f"The grid is too small: {blocks:,.0f} of {sms:,.0f} SMs work", evidence, 1 - blocks / sms
    )


def tail_wave(metrics: Metrics) -> Remark | None:
    """The last wave of blocks fills the GPU only in part. (ncu's LaunchConfiguration rule.)"""
    waves = metrics.number(WAVES)
    if not waves or waves < 1 or waves > MANY_WAVES:
        return None
    part = waves - math.floor(waves)
    saving = (1 - part) / math.ceil(waves) if part > 0.001 else 0.0
    if saving < 0.1:
        return None
    evidence = (
        f"{waves:.2f} waves of blocks: the last one fills {100 * part:.0f} % of the GPU and takes as long as a full "
        f"one. Choose a grid near a whole number of waves, or a persistent kernel."
    )
    return Remark("tail-wave", f"Tail wave: {waves:.2f} waves of blocks", evidence, saving)


def low_occupancy(metrics: Metrics) -> Remark | None:
    """Few warps fit, in a kernel that is not saturated: in one that is, few warps are enough."""
    found = occupancy(metrics)
    if found.possible_percent is None or found.possible_percent > LOW_OCCUPANCY_PERCENT or label(metrics).saturated:
        return None
    title = f"Low occupancy: {found.possible_percent:.3g} % of the warps fit"
    return Remark("low-occupancy", title, f"{found.sentence}.", 1 - found.possible_percent / 100)


def load_imbalance(metrics: Metrics) -> Remark | None:
    """Far fewer warps were active than fit: blocks end at different times, or start too slowly."""
    found = occupancy(metrics)
    if found.possible_percent is None or found.achieved_percent is None or found.possible_percent <= 0:
        return None
    lost = 1 - found.achieved_percent / found.possible_percent
    waves = metrics.number(WAVES)
    if lost < 0.25 or (waves is not None and waves < 1):
        return None
    evidence = (
        f"{found.possible_percent:.3g} % of the warps fit, {found.achieved_percent:.3g} % were active: blocks are "
        f"unequal, or so short that starting them takes a good part of the time."
    )
    return Remark("imbalance", f"Achieved occupancy is {100 * lost:.0f} % below what fits", evidence, lost)


def cache_bound(metrics: Metrics) -> Remark | None:
    """The memory system is busy while DRAM is not: the traffic is between the SM and its caches."""
    memory, dram = metrics.number(MEMORY_PERCENT), metrics.number(DRAM_PERCENT)
    if memory is None or dram is None or memory < LATENCY_PERCENT or memory - dram < 30:
        return None
    busiest = max(
        (
            (value, name)
            for name, metric in (("L1/TEX", L1_PERCENT), ("L2", L2_PERCENT))
            if (value := metrics.number(metric))
        ),
        default=(memory, "the caches"),
    )
    evidence = (
        f"Memory is at {memory:.0f} % of peak and DRAM at {dram:.1f} %: the same data passes {busiest[1]} again and "
        f"again. Keep it in registers or shared memory, and load wider."
    )
    return Remark("cache-bound", f"Bound by {busiest[1]}, not by DRAM", evidence, 1 - dram / memory)


def register_spills(metrics: Metrics) -> Remark | None:
    spilled = metrics.number("sass__inst_executed_register_spilling")
    if not spilled:
        return None
    evidence = f"{spilled:,.0f} instructions move registers to local memory and back: use fewer live values per thread."
    return Remark("register-spills", "Registers spill to local memory", evidence, 0.1)


def main_stall(metrics: Metrics) -> Remark | None:
    """One reason for which warps wait most of the time, in a kernel that does not saturate anything."""
    found = [stall for stall in stalls.stalls(metrics) if stall.reason not in ("selected", "not_selected")]
    if not found or found[0].share < MIN_STALL_SHARE or label(metrics).saturated:
        return None
    top = found[0]
    title = f"Warps wait {100 * top.share:.0f} % of the time: {top.reason}"
    return Remark(
        "stall", title, f"{100 * top.share:.0f} % of the cycles of a resident warp: it {top.words}.", top.share
    )


RULES: tuple[Callable[[Metrics], Remark | None], ...] = (
    uncoalesced,
    bank_conflicts,
    small_grid,
    tail_wave,
    low_occupancy,
    load_imbalance,
    cache_bound,
    register_spills,
    main_stall,
)


def remarks(metrics: Metrics) -> list[Remark]:
    """What stands out, the largest possible saving first."""
    return sorted((r for rule in RULES if (r := rule(metrics))), key=lambda remark: -remark.saving)
