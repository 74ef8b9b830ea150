"""Whose signature makes an approval: one person's, or, where ``REVIEW_SIGNATURES`` is 2, two people's."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from campaigns.models import Attempt, Decision, Review

from .errors import ActionError


def first_signature(attempt: Attempt) -> Review | None:
    """The signature that waits for a second one, unless what it signed has changed since."""
    if attempt.decision != Decision.SIGNED:
        return None
    last = attempt.reviews.order_by("-seq").select_related("reviewer").first()
    return last if last is not None and last.decision == Decision.SIGNED and not last.is_stale() else None


def why_not_second(attempt: Attempt, person: User | None, first: Review) -> str:
    """Why this person's signature is no second one, or "" where it is."""
    if person is None:
        return "A second signature needs a person with an account."
    if first.reviewer_id == person.pk:
        return "You signed first. The second signature is somebody else's."
    if attempt.idea is not None and attempt.idea.author_id == person.pk:
        return "The idea is yours. The second signature is somebody else's."
    return ""


def decision_of(attempt: Attempt, person: User | None, range_: dict[str, Any] | None) -> Decision:
    """What an approval by this person comes to now. Raises ``ActionError`` where it may not be the second one."""
    if settings.REVIEW_SIGNATURES < 2:
        return Decision.APPROVED
    first = first_signature(attempt)
    if first is None:
        return Decision.SIGNED
    if why := why_not_second(attempt, person, first):
        raise ActionError(why)
    if first.range != range_:
        raise ActionError(f"The first signature is {words(first.range)}. Sign the same, or reject it.")
    return Decision.APPROVED


def words(range_: dict[str, Any] | None) -> str:
    return f"for {range_['lo']:,} ≤ {range_['axis']} ≤ {range_['hi']:,}" if range_ else "for all that was measured"
