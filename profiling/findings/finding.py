"""What every rule returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from profiling.idle import Gaps, gaps
from profiling.trace import Trace


@dataclass(frozen=True)
class Finding:
    """A sentence that a person would say, its evidence, and where to look.

    ``saving_ns`` is the most that acting on it could save in this capture: it orders the list and is no promise.
    """

    rule: str
    title: str
    evidence: str
    start_ns: int
    end_ns: int
    saving_ns: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Facts:
    """What several rules need, worked out once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.gaps: Gaps = gaps(trace)
        self.span_ns = max(1, trace.span[1] - trace.span[0])
        self.device_time_ns = max(1, sum(d["end_ns"] - d["start_ns"] for d in trace.devices))
        self.busy_ns = sum(d["busy_ns"] for d in trace.devices)
