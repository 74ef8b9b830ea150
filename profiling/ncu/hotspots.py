"""Where in the source the warps wait: samples, instructions and wasted memory sectors by line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from profiling.events import clean

SAMPLES = "smsp__pcsamp_sample_count"
STALLED = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)$")
EXECUTED = "inst_executed"
SECTORS, IDEAL_SECTORS = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
MAX_LINES = 30
MAX_LINE_CHARS = 300

Instances = dict[str, list[tuple[Any, Any]]]
Place = tuple[str, int]


@dataclass
class HotLine:
    """``file`` is a base name; without a line table it is empty and ``line`` the instruction's offset in bytes."""

    file: str
    line: int
    text: str = ""
    samples: float = 0
    executed: float = 0
    excess_sectors: float = 0
    sectors: float = 0
    stalls: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def hot_lines(
    instances: Instances, base: int, place_of: Callable[[int], Place | None], source: Callable[[Place], str]
) -> list[HotLine]:
    """Lines by samples, then by instructions executed; at most MAX_LINES. Empty where no counter is per instruction.

    :param instances: values by instruction address, by metric.
    :param base: address of the function's first instruction.
    :param place_of: file and line of the instruction so many bytes into the function; None: not known.
    :param source: the text of a line, or an empty string.
    """
    lines: dict[Place, HotLine] = {}
    amounts: dict[Place, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for metric, pairs in instances.items():
        for address, value in pairs:
            if isinstance(address, int) and isinstance(value, int | float) and metric_counts(metric):
                place = place_of(address - base) or ("", address - base)
                amounts[place][metric] += value
    for place, found in amounts.items():
        stalls = {
            match.group(1): value
            for metric, value in found.items()
            if (match := STALLED.match(metric)) and value > 0 and not match.group(1).endswith("_not_issued")
        }
        samples = found[SAMPLES] or sum(stalls.values())
        if not samples and not found[EXECUTED]:
            continue
        lines[place] = HotLine(
            clean(place[0].rsplit("/", 1)[-1])[:120],
            place[1],
            clean(source(place).strip())[:MAX_LINE_CHARS],
            samples,
            found[EXECUTED],
            max(0.0, found[SECTORS] - found[IDEAL_SECTORS]),
            found[SECTORS],
            dict(sorted(stalls.items(), key=lambda item: -item[1])[:4]),
        )
    return sorted(lines.values(), key=lambda line: (-line.samples, -line.executed))[:MAX_LINES]


def metric_counts(metric: str) -> bool:
    return metric in (SAMPLES, EXECUTED, SECTORS, IDEAL_SECTORS) or bool(STALLED.match(metric))
