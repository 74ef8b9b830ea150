"""Speed of light: how much of each unit's peak a kernel reaches, and which part of the unit sets that figure."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.ncu.metrics import DRAM_PERCENT, L1_PERCENT, L2_PERCENT, MEMORY_PERCENT, SM_PERCENT, Metrics

UNITS = (
    ("Compute (SM)", SM_PERCENT),
    ("Memory", MEMORY_PERCENT),
    ("L1/TEX cache", L1_PERCENT),
    ("L2 cache", L2_PERCENT),
    ("DRAM", DRAM_PERCENT),
)
MAX_PARTS = 8


@dataclass(frozen=True)
class Bar:
    """``percent`` of the sustained peak; None: not collected."""

    name: str
    metric: str
    percent: float | None
    parts: tuple[tuple[str, float], ...] = ()


def bars(metrics: Metrics) -> list[Bar]:
    return [Bar(name, metric, metrics.number(metric), parts(metrics, metric)) for name, metric in UNITS]


def parts(metrics: Metrics, metric: str) -> tuple[tuple[str, float], ...]:
    """The unit's breakdown, largest first: a throughput is the maximum of its parts (metric ``breakdown:…``)."""
    names = metrics.text(f"breakdown:{metric}").split(",")
    found = [(name, value) for name in names if (value := metrics.number(name)) is not None]
    return tuple(sorted(found, key=lambda part: -part[1])[:MAX_PARTS])
