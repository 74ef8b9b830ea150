"""What the list of profiles and the commands say of an Nsight Compute report: the keys of ``profiling.report`` that
counters answer better than a timeline, or that have no meaning without one."""

from __future__ import annotations

from typing import Any

from profiling.ncu.groups import Group
from profiling.ncu.rules import Remark
from profiling.words import count, percent

MAX_FINDINGS = 8
NO_TIMELINE = "Nsight Compute measures each launch by itself: there is no timeline, no idle time and no step time"


def overrides(
    found: list[Group], remarks: dict[int, list[Remark]], starts: dict[int, tuple[int, int]]
) -> dict[str, Any]:
    """Keys to lay over the timeline's report.

    :param remarks: by launch.
    :param starts: start and end in ns of each launch as drawn.
    """
    result: dict[str, Any] = {"span_ns": None, "idle_ns": {}, "findings": findings(found, remarks, starts)}
    if not found:
        why = "the report holds no profiled kernel: check the `-k` filter and `--launch-count` of `ncu`"
        return result | {"label": "no kernels captured", "label_title": "No kernels captured", "label_reason": why}
    top = found[0]
    saturated = ", saturated" if top.label.saturated else ""
    word = top.label.name[0].upper() + top.label.name[1:]
    share = f" takes {percent(top.share)} of the kernel time" if top.share is not None else ""
    title = f"{word}{saturated}: {short(top.name, 90)}{share}"
    if top.share is None:
        title = f"{word}: {short(top.name, 90)}"
    return result | {
        "label": top.label.name,
        "label_title": title,
        "label_reason": top.label.reason,
        "kernel_labels": [as_dict(group) for group in found[:50]],
    }


def as_dict(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "grid": list(group.grid),
        "block": list(group.block),
        "launches": len(group.launches),
        "total_ns": group.total_ns,
        "share": group.share,
        "label": group.label.name,
        "reason": group.label.reason,
    }


def findings(
    found: list[Group], remarks: dict[int, list[Remark]], starts: dict[int, tuple[int, int]]
) -> list[dict[str, Any]]:
    """Over all kernels, by what acting on each could save."""
    result: list[dict[str, Any]] = []
    for group in found:
        start, end = starts.get(group.typical, (0, 0))
        for remark in remarks.get(group.typical, []):
            where = short(group.name, 60)
            many = f" ({count(len(group.launches), 'launch', 'launches')})" if len(group.launches) > 1 else ""
            result.append(
                {
                    "rule": remark.rule,
                    "title": f"{where}{many}: {remark.title[0].lower()}{remark.title[1:]}",
                    "evidence": remark.evidence,
                    "start_ns": start,
                    "end_ns": end,
                    "saving_ns": round(remark.saving * (group.total_ns or 0)),
                }
            )
    return sorted(result, key=lambda finding: finding["saving_ns"], reverse=True)[:MAX_FINDINGS]


def short(name: str, limit: int) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
