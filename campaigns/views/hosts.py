"""The Hosts page: where evaluations run."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from campaigns.hosts import broken
from campaigns.models import Cause, Remeasurement
from campaigns.presenters import hosts as presenter

SHOWN = 30


@require_safe
def hosts(request: HttpRequest) -> HttpResponse:
    """``?part=1`` gives the live part alone."""
    context: dict[str, Any] = {"broken": broken(), "problem": ""}
    try:
        context["hosts"] = presenter.hosts()
    except (RedisError, ConnectionError) as error:
        context["problem"] = f"The broker does not answer ({error}). `manage.py doctor` says what is missing."
    rows = Remeasurement.objects.filter(cause=Cause.VERSIONS).select_related("attempt__campaign")
    context["again"] = rows[:SHOWN]
    return render(request, "hosts/_hosts.html" if request.GET.get("part") else "hosts/page.html", context)
