"""What every page's frame shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from campaigns.models import UNDECIDED, Attempt


def shell(request: HttpRequest) -> dict[str, Any]:
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {
        "review_waiting": Attempt.objects.filter(
            verdict="kept", decision__in=UNDECIDED, campaign__imported_from__isnull=True
        ).count()
    }
