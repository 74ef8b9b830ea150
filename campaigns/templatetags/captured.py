from __future__ import annotations

from typing import Any

from django import template

from campaigns import captures
from campaigns.models import Attempt

register = template.Library()


@register.inclusion_tag("attempts/_profiles.html")
def captured_profiles(attempt: Attempt) -> dict[str, Any]:
    """The profiles of an attempt's baseline and candidate, with the way to their comparison."""
    return {"pair": captures.pair(attempt)}
