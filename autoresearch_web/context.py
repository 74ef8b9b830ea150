"""What every page's frame shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from campaigns.presenters import review


def shell(request: HttpRequest) -> dict[str, Any]:
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {"review_waiting": review.waiting().count()}
