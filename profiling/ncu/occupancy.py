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
CURRENT = {
    "registers per thread": "launch__registers_per_thread",
    "shared memory per block (bytes)": "launch__shared_mem_per_block",
    "threads per block": "launch__block_size",
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


@dataclass(frozen=True)
class Step:
    """The nearest change of one resource that lets more warps in."""

    resource: str
    now: int
    then: int
    warps_now: int
    warps_then: int

    @property
    def sentence(self) -> str:
        return (
            f"With {self.then:,} {self.resource} in place of {self.now:,}, {self.warps_then} warps would fit "
            f"a multiprocessor in place of {self.warps_now}."
        )


def steps(metrics: Metrics, curves: dict[str, list[list[float]]]) -> list[Step]:
    """For each resource the nearest smaller amount at which more warps fit; none where less of it does not help."""
    found = []
    for resource, metric in CURVES.items():
        now = metrics.number(CURRENT[resource])
        points = sorted((x, y) for x, y in curves.get(metric, []) if isinstance(x, int) and isinstance(y, int | float))
        if now is None or resource == "threads per block":
            continue
        here = next((y for x, y in points if x >= now), None)
        below = [(x, y) for x, y in points if x < now and here is not None and y > here]
        if here is not None and below:
            then, warps = below[-1]
            found.append(Step(resource, int(now), int(then), int(here), int(warps)))
    return found
