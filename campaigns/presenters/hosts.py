"""The Hosts page: each evaluator as it last described itself, what it does, and what lies before it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from campaigns import dispatch
from campaigns.models import Attempt, EvaluatorHost, Phase, Remeasurement, RemeasureState, Verdict

PEAK_WORDS = {
    "copy_bytes_per_s": "copy",
    "read_bytes_per_s": "read",
    "write_bytes_per_s": "write",
    "memory_clock_bytes_per_s": "memory's clock",
}
AT_SIZE = re.compile(r"(?P<what>copy|read)_at_(?P<bytes>\d+)_bytes_per_s")
UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))


def hosts() -> list[dict[str, Any]]:
    """All that were ever seen, those that are there first."""
    rows = sorted(EvaluatorHost.objects.all(), key=lambda host: (host.is_silent(), host.queue == "gpu.cpu", host.name))
    return [about(host) for host in rows]


def brief() -> list[dict[str, Any]]:
    """For Home: each host and what it does, from the database alone."""
    rows = sorted(EvaluatorHost.objects.all(), key=lambda host: (host.is_silent(), host.queue == "gpu.cpu", host.name))
    return [{"host": host, "now": evaluating_on(host)} for host in rows]


def evaluating_on(host: EvaluatorHost) -> Attempt | None:
    at_it = Attempt.objects.filter(phase=Phase.EVALUATING, host=host.name, campaign__hardware=hardware(host))
    return at_it.select_related("campaign").first()


def about(host: EvaluatorHost) -> dict[str, Any]:
    try:
        described, problem = host.described(), ""
    except msgspec.ValidationError as error:
        described, problem = None, str(error)
    failed = Attempt.objects.filter(host=host.name, verdict=Verdict.NO_MEASUREMENT, campaign__hardware=hardware(host))
    return {
        "host": host,
        "about": described,
        "problem": problem,
        "peaks": peaks(described.peaks if described else {}),
        "by_size": by_size(described.peaks if described else {}),
        "now": evaluating_on(host),
        "last_error": failed.select_related("campaign").order_by("-judged_at").first(),
        "queue_length": dispatch.queue_length(host.queue),
        "again": Remeasurement.objects.filter(
            state=RemeasureState.WAITING, attempt__campaign__hardware=hardware(host)
        ).count(),
    }


def hardware(host: EvaluatorHost) -> str:
    return host.queue.removeprefix("gpu.")


def peaks(measured: dict[str, float]) -> list[tuple[str, str]]:
    """(what, how much with its unit) for people: copy 4.13 TB/s, bfloat16 781 Tflop/s."""
    found = []
    for name, value in sorted(measured.items(), key=lambda one: (one[0] not in PEAK_WORDS, one[0])):
        if name in PEAK_WORDS:
            found.append((PEAK_WORDS[name], rate(value, "B/s")))
        elif name.endswith("_flop_per_s"):
            found.append((name.removesuffix("_flop_per_s"), rate(value, "flop/s")))
    return found


def by_size(measured: dict[str, float]) -> list[tuple[str, str, str]]:
    """(size of the data, copy, read) of a core, whose memory is as fast as the cache that the data fit."""
    found: dict[int, dict[str, str]] = {}
    for name, value in measured.items():
        if at := AT_SIZE.fullmatch(name):
            found.setdefault(int(at["bytes"]), {})[at["what"]] = rate(value, "B/s")
    return [(size_words(size), told.get("copy", ""), told.get("read", "")) for size, told in sorted(found.items())]


def size_words(size_bytes: int) -> str:
    """16384 as 16 KiB, 67108864 as 64 MiB."""
    return f"{size_bytes >> 20} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"


def rate(value: float, unit: str) -> str:
    size, prefix = next(((size, prefix) for size, prefix in UNITS if value >= size), (1.0, ""))
    return f"{value / size:.3g}\u00a0{prefix}{unit}"
