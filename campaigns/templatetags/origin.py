from __future__ import annotations

from django import template

from campaigns.models import Campaign
from campaigns.presenters.origin import Origin, origin_of

register = template.Library()


@register.simple_tag
def origin(campaign: Campaign) -> Origin | None:
    """Where an imported campaign ran; None for one of this installation."""
    return origin_of(campaign)
