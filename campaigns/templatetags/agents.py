from __future__ import annotations

from django import template

from campaigns.proposers import registry

register = template.Library()


@register.filter
def reads(agent: str) -> bool:
    """Whether ideas, notes and reasons reach the agent of that name."""
    return registry.reads(agent)
