from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from campaigns import money, recordings
from campaigns.hosts import broken
from campaigns.models import UNDECIDED, Attempt, Campaign, FlagState, ModelCall, State, Verdict
from campaigns.presenters.chart import sparklines
from campaigns.presenters.hosts import brief
from campaigns.presenters.review import waiting
from profiling.models import Profile

SHOWN = 8
MAX_RECORDED = 20
UNDER_WAY = (State.QUEUED, State.RUNNING, State.PAUSED)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What needs the person now. ``?part=1`` gives the live part alone, for the socket's "something changed"."""
    template = "_home.html" if request.GET.get("part") else "home.html"
    return render(request, template, what_needs_me())


def what_needs_me() -> dict[str, Any]:
    running = list(with_counts(Campaign.objects.filter(state__in=UNDER_WAY, imported_from__isnull=True))[:20])
    recorded = list(with_counts(recordings.campaigns())[:MAX_RECORDED])
    others = Campaign.objects.filter(ended_at__isnull=False).exclude(pk__in=recordings.campaigns().values("pk"))
    ended = list(with_counts(others).order_by("-ended_at")[:5])
    return {
        "approvals": waiting().select_related("campaign", "idea")[:SHOWN],
        "broken": broken()[:SHOWN],
        "flagged": flagged()[:SHOWN],
        "running": running,
        "recorded": recorded,
        "taking_in": recordings.under_way(),
        "ended": ended,
        "sparks": sparklines([*running, *recorded, *ended]),
        "hosts": brief(),
        "today": money.spent(ModelCall.objects.filter(at__gte=timezone.now().replace(hour=0, minute=0, second=0))),
        "profiles": Profile.objects.filter(taken_for=None).order_by("-created_at")[:6],
        "is_new": not Campaign.objects.exists(),
    }


def flagged() -> Any:
    """Attempts that a detector stopped and that no person has looked at."""
    blocked = Attempt.objects.filter(
        verdict=Verdict.FLAGGED, flags__state=FlagState.OPEN, campaign__imported_from__isnull=True
    )
    return blocked.distinct().select_related("campaign").prefetch_related("flags").order_by("-judged_at")


def with_counts(campaigns: Any) -> Any:
    return campaigns.select_related("created_by").annotate(
        n_judged=Count("attempts", filter=~Q(attempts__verdict="")),
        n_kept=Count("attempts", filter=kept_by_attempt()),
        n_waiting=Count("attempts", filter=Q(attempts__verdict=Verdict.KEPT, attempts__decision__in=UNDECIDED)),
    )


def kept_by_attempt() -> Q:
    return Q(attempts__verdict=Verdict.KEPT) & ~Q(attempts__decision="rejected")
