from __future__ import annotations

from typing import Any

from django import template

from campaigns import captures
from campaigns.models import Attempt
from campaigns.presenters import captured
from profiling.models import Profile

register = template.Library()
register.filter(captured.captures_title)


@register.inclusion_tag("attempts/_profiles.html")
def captured_profiles(attempt: Attempt) -> dict[str, Any]:
    """The profiles of an attempt's baseline and candidate, with the way to their comparison."""
    return {"pair": captures.pair(attempt), "attempt": attempt}


@register.inclusion_tag("attempts/_taken_for.html")
def taken_for(profile: Profile) -> dict[str, Any]:
    """Which attempt a profile shows, and where that ran; nothing of a capture that a person uploaded."""
    return {"rows": profile.taken_for.select_related("attempt__campaign").order_by("id")[:4]}


@register.simple_tag
def verdicts_of(a: Profile | None, b: Profile | None) -> list[captured.Judged]:
    """What was measured of the kernels in two captures; nothing where these are not of an attempt."""
    return captured.verdicts_of(a, b) if a and b else []
