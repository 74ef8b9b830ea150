"""The campaign's own copy of its problem, as far as pages need it. Never raises: a page outlives a broken problem."""

from __future__ import annotations

import tomllib
from typing import Any

from campaigns.models import Campaign


def problem_table(campaign: Campaign) -> dict[str, Any]:
    """``problem.toml`` as the campaign copied it in; empty where it cannot be read."""
    try:
        return tomllib.loads(campaign.problem_files.get("problem.toml", ""))
    except (tomllib.TOMLDecodeError, AttributeError):
        return {}


def sweep_axis(campaign: Campaign) -> str:
    sweep = problem_table(campaign).get("sweep")
    return sweep if isinstance(sweep, str) else ""


def axes_in_order(campaign: Campaign) -> dict[str, int]:
    """Each axis's place in the problem: JSON that was sorted on its way forgot it."""
    axes = problem_table(campaign).get("axes")
    return {str(name): place for place, name in enumerate(axes)} if isinstance(axes, list) else {}


def checked_only(campaign: Campaign) -> set[str]:
    """Workloads that the problem wants right and never timed."""
    workloads = problem_table(campaign).get("workloads")
    entries = workloads if isinstance(workloads, list) else []
    return {str(w.get("name")) for w in entries if isinstance(w, dict) and w.get("timed") is False}


def baseline_title(campaign: Campaign) -> str:
    baselines = problem_table(campaign).get("baselines")
    entry = baselines.get(campaign.baseline) if isinstance(baselines, dict) else None
    title = entry.get("title") if isinstance(entry, dict) else None
    return title if isinstance(title, str) and title else campaign.baseline
