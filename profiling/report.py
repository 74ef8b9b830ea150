"""The import's result as plain data: what the page, the list and `manage.py import_profile --json` show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from profiling import findings
from profiling.events import NO_TIMELINE
from profiling.store import Store
from profiling.summary import top_kernels
from profiling.trace import Trace


def build(store_dir: Path) -> dict[str, Any]:
    """Keys are stable. ``busy_share`` is the union of the device's intervals over its own span, null without one."""
    trace = Trace(Store(store_dir))
    meta = trace.store.meta
    facts = findings.Facts(trace)
    label = findings.label(facts)
    return {
        "format": meta["format"],
        "producer": meta["producer"],
        "schema": meta["schema"],
        "gpus": sorted({d["name"] for d in meta["devices"] if d["name"]}),
        "kernels": meta["events"]["kernel"],
        "span_ns": trace.span[1] - trace.span[0] if meta["end_ns"] > meta["start_ns"] else None,
        "start_ns": trace.span[0],
        "end_ns": trace.span[1],
        "devices": [device(d) for d in meta["devices"]],
        "events": meta["events"],
        "counters": len(meta["counters"]),
        "top_kernels": labelled(facts),
        "label": label.name,
        "label_title": label.title,
        "label_reason": label.reason,
        "findings": [finding.as_dict() for finding in findings.find(facts)],
        "idle_ns": {cause: facts.gaps.total_ns(cause) for cause in facts.gaps.causes},
        "not_captured": meta["not_captured"],
        "notes": meta["notes"],
    }


def labelled(facts: findings.Facts) -> list[dict[str, Any]]:
    """The top kernels, each with its label and the reason where there is a timeline to tell from."""
    trace, rows = facts.trace, np.flatnonzero(facts.trace.is_kernel)
    result = top_kernels(trace)
    if trace.store.meta["format"] in NO_TIMELINE:
        return result
    for kernel in result:
        exact = [
            i for i in trace.store.names_matching(kernel["name"]).tolist() if trace.store.name(i) == kernel["name"]
        ]
        mine = rows[np.isin(trace.gpu["name"][rows], exact)]
        kernel["label"], kernel["label_reason"] = findings.label_kernel(facts, mine)
    return result


def device(facts: dict[str, Any]) -> dict[str, Any]:
    span = facts["end_ns"] - facts["start_ns"]
    return {
        "id": facts["id"],
        "name": facts["name"] or None,
        "busy_share": round(facts["busy_ns"] / span, 6) if span > 0 else None,
        "busy_ns": facts["busy_ns"],
        "span_ns": span,
        "events": facts["events"],
    }
