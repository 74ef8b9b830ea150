"""What models cost, and what they bring: by campaign, idea, person, model and language."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from campaigns import money
from campaigns.models import Attempt, Campaign, Idea, ModelCall, Phase

DAYS = {"1": 1, "7": 7, "30": 30, "all": None}
ROWS = 50


@require_safe
def spend(request: HttpRequest) -> HttpResponse:
    chosen = request.GET.get("days", "30")
    days = DAYS.get(chosen, 30)
    calls, attempts = ModelCall.objects.all(), Attempt.objects.filter(campaign__imported_from__isnull=True)
    if days is not None:
        since = timezone.now() - timedelta(days=days)
        calls, attempts = calls.filter(at__gte=since), attempts.filter(created_at__gte=since)
    context = {
        "days": chosen if chosen in DAYS else "30",
        "choices": list(DAYS),
        "total": money.spent(calls),
        "evaluator_s": money.evaluator_seconds(attempts),
        "campaigns": by_campaign(calls),
        "ideas": by_idea(calls),
        "people": [(key["person__username"], total) for key, total in money.by(calls, "person__username")],
        "models": by_model(calls, attempts),
    }
    return render(request, "context/spend.html", context)


def by_campaign(calls: Any) -> list[dict[str, Any]]:
    rows = money.by(calls.exclude(campaign=None), "campaign")[:ROWS]
    found = Campaign.objects.in_bulk([key["campaign"] for key, _ in rows])
    return [
        {
            "campaign": found[key["campaign"]],
            "total": total,
            "per_kept": money.cost_per_kept(found[key["campaign"]]),
            "evaluator_s": money.evaluator_seconds(found[key["campaign"]].attempts.all()),
        }
        for key, total in rows
    ]


def by_idea(calls: Any) -> list[tuple[Idea, Any]]:
    rows = money.by(calls.exclude(attempt__idea=None), "attempt__idea")[:ROWS]
    found = Idea.objects.select_related("campaign").in_bulk([key["attempt__idea"] for key, _ in rows])
    return [(found[key["attempt__idea"]], total) for key, total in rows]


def by_model(calls: Any, attempts: Any) -> list[dict[str, Any]]:
    """Per model and backend: tokens and money, attempts, how many were kept, and whether its own kernels ran."""
    rows = []
    for key, total in money.by(calls, "model", "backend")[:ROWS]:
        made = attempts.filter(model_calls__model=key["model"], backend=key["backend"]).distinct()
        counts = made.filter(phase=Phase.JUDGED).aggregate(
            judged=Count("id", distinct=True),
            kept=Count("id", distinct=True, filter=Q(verdict="kept") & ~Q(decision="rejected")),
        )
        judged = counts["judged"]
        rows.append(
            {
                **key,
                "total": total,
                **counts,
                "keep_rate": counts["kept"] / judged if judged else None,
                "engagement": engagement(made),
            }
        )
    return rows


def engagement(attempts: Any) -> float | None:
    """The mean share of device time in kernels that the candidate itself brought, over reports that say so."""
    shares = []
    for attempt in attempts.exclude(report="").order_by("-id").only("report")[:200]:
        report = attempt.parsed_report()
        if report and report.engagement:
            shares.append(sum(float(k.get("share") or 0) for k in report.engagement if k.get("own")))
    return sum(shares) / len(shares) if shares else None
