"""Occupancy: how many warps could be resident, how many were, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.ncu.metrics import WARPS_ACTIVE_PERCENT, WARPS_POSSIBLE_PERCENT, Metrics, NotCollected

LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "barriers": "launch__occupancy_limit_barriers",
}
CURVES = {
    "registers per thread": "launch__occupancy_per_register_count",
    "shared memory per block (bytes)": "launch__occupancy_per_shared_mem_size",
    "threads per block": "launch__occupancy_per_block_size",
}
MISSING = NotCollected("occupancy", "--section Occupancy")


@dataclass(frozen=True)
class Occupancy:
    """Percent of the warps that a multiprocessor can hold. ``limits``: resident blocks that each resource allows."""

    possible_percent: float | None
    achieved_percent: float | None
    limits: tuple[tuple[str, int], ...]

    @property
    def limiters(self) -> list[str]:
        """The resources that allow the fewest blocks."""
        fewest = min((blocks for _, blocks in self.limits), default=0)
        return [name for name, blocks in self.limits if blocks == fewest]

    @property
    def sentence(self) -> str:
        if self.possible_percent is None:
            return MISSING.sentence
        held = f"{self.possible_percent:.3g} % of the warps fit"
        if self.limits and self.possible_percent < 100:
            blocks = min(count for _, count in self.limits)
            held += f": {' and '.join(self.limiters)} allow {blocks} block{'s' if blocks != 1 else ''} a multiprocessor"
        if self.achieved_percent is None:
            return held
        return f"{held}; {self.achieved_percent:.3g} % were active"


def occupancy(metrics: Metrics) -> Occupancy:
    limits = [(name, metrics.number(metric)) for name, metric in LIMITS.items()]
    return Occupancy(
        metrics.number(WARPS_POSSIBLE_PERCENT),
        metrics.number(WARPS_ACTIVE_PERCENT),
        tuple((name, int(value)) for name, value in limits if value is not None),
    )
