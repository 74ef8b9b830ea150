from __future__ import annotations

from typing import Any

from django import template

from campaigns import captures
from campaigns.models import Attempt, Campaign, Verdict
from campaigns.presenters import captured
from profiling.models import Profile
from profiling.models import State as ProfileState

register = template.Library()
register.filter(captured.captures_title)
MAX_TIMELINES = 4
COMING = (str(ProfileState.UPLOADED.label), str(ProfileState.IMPORTING.label))


@register.inclusion_tag("attempts/_profiles.html")
def captured_profiles(attempt: Attempt) -> dict[str, Any]:
    """The profiles of an attempt's baseline and candidate, with the way to their comparison."""
    return {"pair": captures.pair(attempt), "attempt": attempt}


@register.simple_tag
def side_by_side(attempt: Attempt) -> str:
    """The address at which an attempt's capture stands beside its baseline's; empty where one of the two is not there."""
    found = captures.pair(attempt) if attempt.verdict == Verdict.KEPT else None
    return found.compare if found else ""


@register.simple_tag
def timelines_of(campaign: Campaign) -> dict[str, Any]:
    """``shown``: the latest kept attempts whose captures can be seen beside the baseline's, each with the address.
    ``coming``: whether others are still imported."""
    kept = campaign.attempts.filter(verdict=Verdict.KEPT).order_by("-number")[:MAX_TIMELINES]
    pairs = [(attempt, pair) for attempt in kept if (pair := captures.pair(attempt))]
    return {
        "shown": [(attempt, pair.compare) for attempt, pair in pairs if pair.compare],
        "coming": any(side.word in COMING for _, pair in pairs for side in pair.sides),
    }


@register.inclusion_tag("attempts/_taken_for.html")
def taken_for(profile: Profile) -> dict[str, Any]:
    """Which attempt a profile shows, and where that ran; nothing of a capture that a person uploaded."""
    return {"rows": profile.taken_for.select_related("attempt__campaign").order_by("id")[:4]}


@register.simple_tag
def verdicts_of(a: Profile | None, b: Profile | None) -> list[captured.Judged]:
    """What was measured of the kernels in two captures; nothing where these are not of an attempt."""
    return captured.verdicts_of(a, b) if a and b else []
