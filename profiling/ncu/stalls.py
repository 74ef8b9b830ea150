"""Why warps wait: cycles between two issued instructions, by reason (section WarpStateStats)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiling.ncu.metrics import Metrics, NotCollected

RATIO = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio$")
SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)$")
MISSING = NotCollected("stall reasons", "--section WarpStateStats --section SourceCounters")
WORDS = {
    "barrier": "waits at a block barrier (__syncthreads)",
    "branch_resolving": "waits for a branch target",
    "dispatch_stall": "the dispatcher holds the warp back",
    "drain": "waits for stores to drain at the end",
    "gmma": "waits for a warpgroup matrix instruction",
    "imc_miss": "waits for a constant that missed its cache",
    "lg_throttle": "the queue for local and global memory is full",
    "long_scoreboard": "waits for global or local memory",
    "math_pipe_throttle": "waits for a busy arithmetic pipe",
    "membar": "waits at a memory fence",
    "mio_throttle": "the queue for shared memory and special instructions is full",
    "misc": "other reasons",
    "no_instruction": "waits for the next instruction to be fetched",
    "no_instructions": "waits for the next instruction to be fetched",
    "not_selected": "was ready, another warp was chosen",
    "selected": "issued an instruction",
    "short_scoreboard": "waits for shared memory or a special function",
    "sleeping": "sleeps",
    "tex_throttle": "the texture queue is full",
    "wait": "waits a fixed latency",
    "warpgroup_arrive": "waits for its warpgroup to arrive",
}


@dataclass(frozen=True)
class Stall:
    """``share`` of all cycles (or of all samples, where only those were collected) that a warp is resident."""

    reason: str
    words: str
    value: float
    share: float


def stalls(metrics: Metrics) -> list[Stall]:
    """By share, largest first; empty where they were not collected. ``selected`` is the part that is no stall."""
    for pattern in (RATIO, SAMPLES):
        found = {
            match.group(1): value
            for name in metrics.values
            if (match := pattern.match(name)) and (value := metrics.number(name)) is not None
            if not match.group(1).endswith("_not_issued")
        }
        whole = sum(found.values())
        if whole > 0:
            rows = [Stall(r, WORDS.get(r, ""), v, v / whole) for r, v in found.items() if v > 0]
            return sorted(rows, key=lambda stall: -stall.share)
    return []
