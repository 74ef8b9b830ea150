"""Launches of one kernel in one shape, taken together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from profiling.ncu.labels import KernelLabel, label
from profiling.ncu.metrics import DRAM_PERCENT, DURATION_NS, MEMORY_PERCENT, SM_PERCENT, WARPS_ACTIVE_PERCENT, Metrics


@dataclass(frozen=True)
class Group:
    """``launches`` are indices in report order; ``typical`` is the one of median duration, its label stands for all."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    launches: tuple[int, ...]
    total_ns: float | None
    share: float | None
    typical: int
    label: KernelLabel
    others: tuple[tuple[str, int], ...]
    metrics: Metrics

    @property
    def mean_ns(self) -> float | None:
        return None if self.total_ns is None else self.total_ns / len(self.launches)

    @property
    def compute_percent(self) -> float | None:
        return self.metrics.number(SM_PERCENT)

    @property
    def memory_percent(self) -> float | None:
        return self.metrics.number(MEMORY_PERCENT)

    @property
    def dram_percent(self) -> float | None:
        return self.metrics.number(DRAM_PERCENT)

    @property
    def warps_percent(self) -> float | None:
        return self.metrics.number(WARPS_ACTIVE_PERCENT)


def groups(launches: list[dict[str, Any]]) -> list[Group]:
    """By total time, largest first; kernels without a measured time come last."""
    members: dict[tuple[str, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for index, launch in enumerate(launches):
        members.setdefault((launch["demangled"], tuple(launch["grid"]), tuple(launch["block"])), []).append(index)
    whole = sum(duration(launch) or 0.0 for launch in launches)
    found = [group(launches, indices, whole) for indices in members.values()]
    return sorted(found, key=lambda g: (g.total_ns is None, -(g.total_ns or 0.0)))


def group(launches: list[dict[str, Any]], indices: list[int], whole: float) -> Group:
    measured = [(value, index) for index in indices if (value := duration(launches[index])) is not None]
    total = sum(value for value, _ in measured) if measured else None
    typical = sorted(measured)[(len(measured) - 1) // 2][1] if measured else indices[0]
    facts = launches[typical]
    own = label(Metrics(facts["metrics"]))
    names = Counter(label(Metrics(launches[i]["metrics"])).name for i in indices)
    others = tuple((name, count) for name, count in names.most_common() if name != own.name)
    share = total / whole if total is not None and whole > 0 else None
    grid, block = ((*facts[key][:3],) for key in ("grid", "block"))
    metrics = Metrics(facts["metrics"])
    return Group(facts["name"], grid, block, tuple(indices), total, share, typical, own, others, metrics)


def duration(launch: dict[str, Any]) -> float | None:
    return Metrics(launch["metrics"]).number(DURATION_NS)
