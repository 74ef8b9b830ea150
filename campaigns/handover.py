"""A model has the big idea, the tuner turns its numbers: sizes of a promising candidate are tried without a model."""

from __future__ import annotations

from campaigns.harness.request import CandidateSource
from campaigns.models import Attempt, Campaign, Phase, Verdict
from campaigns.proposers.registry import MODELS

POINTS = 6
"""Points of the parameters that are tried of each promising candidate, unless the option ``tune`` says otherwise."""
NEAR = 0.97
"""A right candidate that is this near to its incumbent counts as promising: sizes often are worth a few per cent."""
LATEST = 20


def to_tune(campaign: Campaign) -> CandidateSource | None:
    """The candidate whose parameters the next attempt should turn, or None: the model is asked."""
    points = int(campaign.agent_options.get("tune", POINTS))
    if campaign.agent not in MODELS or points < 1:
        return None
    judged = campaign.attempts.filter(phase=Phase.JUDGED, proposer__in=MODELS).exclude(parameters={})
    for attempt in judged.exclude(decision="rejected").order_by("-number")[:LATEST]:
        if is_promising(attempt) and turned(campaign, attempt) < points:
            return best_point(campaign, attempt).candidate()
    return None


def is_promising(attempt: Attempt) -> bool:
    if attempt.verdict in (Verdict.KEPT, Verdict.STACKED):
        return True
    return attempt.verdict == Verdict.REVERTED and (attempt.over_incumbent or 0) >= NEAR


def turned(campaign: Campaign, attempt: Attempt) -> int:
    same = campaign.attempts.filter(structure_sha256=attempt.structure_sha256, proposer="tuner")
    return same.exclude(phase=Phase.DROPPED).count()


def best_point(campaign: Campaign, attempt: Attempt) -> Attempt:
    """The fastest right point of its program so far."""
    same = campaign.attempts.filter(structure_sha256=attempt.structure_sha256, over_incumbent__isnull=False)
    right = same.filter(verdict__in=(Verdict.KEPT, Verdict.STACKED, Verdict.REVERTED)).exclude(decision="rejected")
    return right.order_by("-speedup").first() or attempt
