from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, Q, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from campaigns import recordings
from campaigns.models import Campaign, State
from campaigns.presenters.chart import campaign_points, sparklines
from campaigns.presenters.problem import problem_table
from campaigns.presenters.strip import strip

from .home import UNDER_WAY, with_counts

ROWS = 200
"""Attempts on a campaign's page at first; earlier ones come when they are asked for."""


@require_safe
def campaign_list(request: HttpRequest) -> HttpResponse:
    """Those under way, then the newest; what came recorded with the product last."""
    state = request.GET.get("state", "")
    recorded = Q(pk__in=recordings.campaigns().order_by().values("pk"))
    under_way = Q(state__in=UNDER_WAY, imported_from__isnull=True)
    rank = Case(When(recorded, then=2), When(under_way, then=0), default=1, output_field=IntegerField())
    campaigns = with_counts(Campaign.objects.order_by(rank, "-id"))
    if state in State.values:
        campaigns = campaigns.filter(state=state)
    page = Paginator(campaigns, 50).get_page(request.GET.get("page"))
    context = {"page": page, "sparks": sparklines(page.object_list), "states": State.choices, "state": state}
    return render(request, "campaigns/list.html", context)


@require_safe
def campaign(request: HttpRequest, pk: int) -> HttpResponse:
    """The live page. The last event's number is read before the rows: what comes in between is sent again, not lost."""
    found = get_object_or_404(Campaign.objects.select_related("region", "created_by"), pk=pk)
    context = {
        **strip(found),
        **rows_before(found, None),
        "since": found.event_seq,
        "points": campaign_points(found),
        "problem_title": problem_table(found).get("title") or found.problem,
    }
    return render(request, "campaigns/detail.html", context)


@require_safe
def earlier(request: HttpRequest, pk: int) -> HttpResponse:
    """The rows before attempt ``?before=``, for "show earlier"."""
    found = get_object_or_404(Campaign, pk=pk)
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 10 else None
    context = {"campaign": found, **rows_before(found, number)}
    if request.headers.get("HX-Request"):
        return render(request, "campaigns/_rows.html", context)
    return render(request, "campaigns/earlier.html", context)


def rows_before(found: Campaign, number: int | None) -> dict[str, Any]:
    """The newest ``ROWS`` attempts, or those before ``number``, with the number to go on from."""
    attempts = found.attempts.order_by("-number").prefetch_related("flags").defer("report", "files", "rationale")
    if number is not None:
        attempts = attempts.filter(number__lt=number)
    rows = list(attempts[: ROWS + 1])
    more = len(rows) > ROWS
    return {"attempts": rows[:ROWS], "earlier": rows[ROWS - 1].number if more else None}
