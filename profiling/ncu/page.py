"""What the page of one kernel shows, out of its metrics. No Django here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profiling.ncu import occupancy, roofline, speed_of_light, stalls
from profiling.ncu.groups import Group
from profiling.ncu.labels import KernelLabel, label, peak
from profiling.ncu.metrics import (
    DRAM_BYTES_PER_S,
    DURATION_NS,
    DYNAMIC_SHARED_BYTES,
    MEMORY_PERCENT,
    REGISTERS,
    SM_PERCENT,
    STATIC_SHARED_BYTES,
    WAVES,
    Metrics,
    NotCollected,
    unit,
)
from profiling.ncu.occupancy import Occupancy, Step
from profiling.ncu.roofline import Point, Roofline
from profiling.ncu.rules import Remark, remarks
from profiling.ncu.speed_of_light import Bar
from profiling.ncu.stalls import Stall
from profiling.words import size

SOURCE = NotCollected("source hot spots", "--section SourceCounters --import-source yes")
RULE_KINDS = {2: "warning", 3: "error", 4: "advice"}
MAX_LAUNCHES = 400


@dataclass(frozen=True)
class Kernel:
    """One launch, and the group of launches that it stands for. Absent figures are None, and say what to rerun."""

    index: int
    group: Group
    facts: dict[str, Any]
    metrics: Metrics
    label: KernelLabel
    bars: list[Bar]
    roofline: Roofline | None
    occupancy: Occupancy
    steps: list[Step]
    stalls: list[Stall]
    lines: list[dict[str, Any]]
    has_lines: bool
    remarks: list[Remark]
    rules: list[dict[str, Any]]

    @property
    def duration_ns(self) -> float | None:
        return self.metrics.number(DURATION_NS)

    @property
    def missing(self) -> dict[str, NotCollected]:
        """By part of the page: what was not collected."""
        found = {}
        if self.roofline is None:
            found["roofline"] = roofline.MISSING
        if self.occupancy.possible_percent is None:
            found["occupancy"] = occupancy.MISSING
        if not self.stalls:
            found["stalls"] = stalls.MISSING
        if not self.lines:
            found["lines"] = SOURCE
        return found


def kernel(index: int, group: Group, facts: dict[str, Any], details: dict[str, Any]) -> Kernel:
    metrics = Metrics(details["metrics"])
    lines = [dict(line, share=share) for line, share in zip(details["lines"], shares(details["lines"]), strict=True)]
    return Kernel(
        index,
        group,
        facts,
        metrics,
        label(metrics),
        speed_of_light.bars(metrics),
        roofline.roofline(metrics),
        occupancy.occupancy(metrics),
        occupancy.steps(metrics, details["curves"]),
        stalls.stalls(metrics),
        [with_words(line) for line in lines],
        any(line["file"] for line in lines),
        remarks(metrics),
        [rule | {"kind_word": RULE_KINDS[rule["kind"]]} for rule in details["rules"] if rule["kind"] in RULE_KINDS],
    )


def shares(lines: list[dict[str, Any]]) -> list[float]:
    """Each line's part of the samples; of the instructions executed where nothing was sampled."""
    for key in ("samples", "executed"):
        whole = sum(line[key] for line in lines)
        if whole > 0:
            return [line[key] / whole for line in lines]
    return [0.0] * len(lines)


def with_words(line: dict[str, Any]) -> dict[str, Any]:
    """The line with its place in words and its main stall."""
    stalled = {reason: value for reason, value in line["stalls"].items() if reason != "selected"}
    reason = max(stalled, key=lambda r: stalled[r], default="")
    whole = line["samples"] or sum(line["stalls"].values())
    main = (reason, stalled[reason] / whole) if reason and whole else None
    place = f"{line['file']}:{line['line']}" if line["file"] else f"+0x{line['line']:x}"
    excess = line["excess_sectors"] / line["sectors"] if line["sectors"] else None
    return line | {"place": place, "main_stall": main, "stall_words": stalls.WORDS.get(reason, ""), "excess": excess}


def figures(found: Kernel) -> list[tuple[str, str | None]]:
    """The strip of numbers: name and value in words, None where it was not collected."""
    metrics = found.metrics

    def words(name: str, form: str, factor: float = 1.0) -> str | None:
        value = metrics.number(name)
        return None if value is None else form.format(value * factor)

    def percent(name: str) -> str | None:
        value = metrics.number(name)
        return None if value is None else peak(value)

    shared = metrics.total(STATIC_SHARED_BYTES, DYNAMIC_SHARED_BYTES)
    return [
        ("compute", percent(SM_PERCENT)),
        ("memory", percent(MEMORY_PERCENT)),
        ("DRAM traffic", words(DRAM_BYTES_PER_S, "{:,.0f} GB/s", 1e-9)),
        ("registers a thread", words(REGISTERS, "{:.0f}")),
        ("shared memory a block", None if shared is None else size(shared)),
        ("waves", words(WAVES, "{:,.3g}")),
    ]


def plot(found: Kernel, others: list[tuple[str, Roofline]]) -> dict[str, Any] | None:
    """The roofline as plain data for the page's script.

    :param others: other kernels of the report, drawn small for comparison.
    """
    roof = found.roofline
    if roof is None:
        return None

    def point(name: str, item: Point, of: Roofline) -> dict[str, Any]:
        reached = item.flops / item.attainable(of) if item.attainable(of) else 0.0
        return {"kernel": name, "name": item.name, "x": item.intensity, "y": item.flops, "reached": reached}

    return {
        "bytes_per_s": roof.bytes_per_s_peak,
        "roofs": [{"name": r.name, "flops": r.flops} for r in roof.roofs],
        "points": [point(found.facts["name"], p, roof) for p in roof.points],
        "others": [point(name, other.points[0], other) for name, other in others if other.points],
    }


def rows(metrics: Metrics, text: str = "") -> list[tuple[str, str, str]]:
    """Every collected metric whose name contains ``text``: name, value and unit, by name."""
    wanted = text.lower().split()
    return [
        (name, value_words(value), unit(name))
        for name, value in sorted(metrics.values.items())
        if all(word in name.lower() for word in wanted)
    ]


def value_words(value: int | float | str) -> str:
    if isinstance(value, str):
        return value if len(value) <= 300 else value[:299] + "…"
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.6g}"
