"""Grids that do not fit the GPU: a last wave that is nearly empty, or too few blocks to reach every SM.

A wave is as many blocks as are resident at once: SMs × blocks per SM. What limits the blocks of an SM is its warps, its
registers (given out to warps in units of 256), its shared memory (1 KiB of it a block is the system's since compute
capability 8.0) and its block slots: CUDA C++ Programming Guide, "Compute Capabilities"; NVIDIA's occupancy calculator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from profiling.events import Column
from profiling.findings.finding import Facts, Finding
from profiling.words import count, duration, percent

WARP = 32
REGISTER_UNIT, PARTITIONS, SYSTEM_SHARED_BYTES = 256, 4, 1024
MOST_WAVES = 8
"""With more waves than this the last one costs little, and blocks have drifted apart by then."""
SHORT_NS = 5_000
"""Of a shorter kernel most is the latency of a launch and of memory, which more blocks do not shorten."""
MIN_SHARE = 0.02
DEFAULTS = {"max_warps_per_sm": 64, "registers_per_sm": 65536, "shared_bytes_per_sm": 0, "blocks_per_sm": 32}
LIMITS = ("warps", "registers", "shared memory", "block slots")


def find(facts: Facts) -> list[Finding]:
    found: list[Finding] = []
    for device in facts.trace.devices:
        sms = int(device["facts"].get("sm_count", 0))
        if sms > 0:
            computing = facts.trace.is_kernel & ~facts.trace.communication
            rows = np.flatnonzero(computing & (facts.trace.gpu["device"] == device["id"]))
            found += device_findings(facts, rows, sms, device["facts"])
    return found


def device_findings(facts: Facts, rows: Column, sms: int, known: dict[str, Any]) -> list[Finding]:
    shapes = {name: column[rows].astype(np.int64) for name, column in facts.trace.shapes.items()}
    blocks = np.prod([shapes[f"grid_{axis}"] for axis in "xyz"], axis=0)
    resident, limit = blocks_per_sm(shapes, known)
    length = facts.trace.gpu["end"][rows] - facts.trace.gpu["start"][rows]
    usable = (blocks > 0) & (resident > 0) & (length > SHORT_NS)
    waves = np.where(usable, blocks / np.maximum(resident * sms, 1), 0.0)
    whole = np.ceil(waves)
    tail = np.where((waves > 1) & (whole <= MOST_WAVES), length * (1 - waves / np.maximum(whole, 1)), 0.0)
    idle_sms = np.where(usable & (blocks < sms), length * (1 - blocks / sms), 0.0)
    found = []
    for lost, describe in ((tail, describe_tail), (idle_sms, describe_small)):
        names = facts.trace.gpu["full_name"][rows]
        total = np.bincount(names, lost, minlength=1) if len(rows) else np.zeros(1)
        worst = int(total.argmax())
        if total[worst] < MIN_SHARE * facts.device_time_ns:
            continue
        mine = np.flatnonzero((names == worst) & (lost > 0))
        at = mine[int(lost[mine].argmax())]
        words = {"blocks": int(blocks[at]), "sms": sms, "resident": int(resident[at]), "limit": LIMITS[int(limit[at])]}
        start, end = (int(facts.trace.gpu[column][rows[at]]) for column in ("start", "end"))
        title, evidence = describe(facts, rows[at], words, len(mine), float(length[mine].sum()), float(total[worst]))
        rule = "tail-wave" if describe is describe_tail else "small-grid"
        found.append(Finding(rule, title, evidence, start, end, int(total[worst])))
    return found


def blocks_per_sm(shapes: dict[str, Column], known: dict[str, Any]) -> tuple[Column, Column]:
    """How many blocks of each kernel fit on an SM (0 where the capture does not say), and which limit it is."""
    have = DEFAULTS | {key: int(known[key]) for key in DEFAULTS if known.get(key)}
    if known.get("max_threads_per_sm"):
        have["max_warps_per_sm"] = int(known["max_threads_per_sm"]) // WARP
    threads = np.prod([shapes[f"block_{axis}"] for axis in "xyz"], axis=0)
    warps = np.maximum(-(-threads // WARP), 1)
    a_warp = np.maximum(-(-shapes["registers"] * WARP // REGISTER_UNIT), 1) * REGISTER_UNIT
    by_registers = have["registers_per_sm"] // PARTITIONS // a_warp * PARTITIONS // warps
    shared = np.maximum(shapes["static_shared_bytes"], 0) + np.maximum(shapes["dynamic_shared_bytes"], 0)
    slots = np.full(len(threads), have["blocks_per_sm"])
    by_shared = have["shared_bytes_per_sm"] // (shared + SYSTEM_SHARED_BYTES) if have["shared_bytes_per_sm"] else slots
    limits = np.stack([have["max_warps_per_sm"] // warps, by_registers, by_shared, slots])
    recorded = (threads > 0) & (shapes["registers"] > 0)
    return np.where(recorded, limits.min(axis=0), 0), limits.argmin(axis=0)


def describe_tail(
    facts: Facts, row: int, words: dict[str, Any], calls: int, ran: float, lost: float
) -> tuple[str, str]:
    wave = words["sms"] * words["resident"]
    rest = words["blocks"] % wave
    return (
        f"Tail wave: {name_of(facts, row)} fills the GPU {words['blocks'] / wave:.2f} times over",
        f"{words['blocks']:,} blocks, of which {words['resident']} fit on each of {words['sms']} SMs ({words['limit']}): "
        f"a wave is {wave:,} blocks, and the last one has {rest:,} ({percent(rest / wave)} of the GPU). "
        f"{count(calls, 'call')}, {duration(ran)}; up to {duration(lost)} of it is the tail. Choose tiles so that the grid is a "
        f"multiple of {wave:,} blocks, split the last wave, or make the kernel persistent.",
    )


def describe_small(
    facts: Facts, row: int, words: dict[str, Any], calls: int, ran: float, lost: float
) -> tuple[str, str]:
    return (
        f"{name_of(facts, row)} has {count(words['blocks'], 'block')} for {words['sms']} SMs",
        f"{count(calls, 'call')} with a grid that leaves SMs without any block, {duration(ran)} in all; up to {duration(lost)} "
        "could be saved: smaller tiles, split the reduction (split-K), or run other work beside it.",
    )


def name_of(facts: Facts, row: int) -> str:
    return facts.trace.store.name(int(facts.trace.gpu["name"][row]))
