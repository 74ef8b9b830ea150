from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from campaigns.models import Attempt, Flag
from campaigns.presenters.evidence import difference, evidence, flags_of
from campaigns.presenters.review import history


def found(pk: int, number: int) -> Attempt:
    attempts = Attempt.objects.select_related("campaign", "parent", "idea__author")
    return get_object_or_404(attempts, campaign_id=pk, number=number)


def wanted_diff(request: HttpRequest) -> tuple[str, str]:
    """(against, view): from the address, else as this browser had it last."""
    view = request.GET.get("view") or request.COOKIES.get("diff", "")
    against = "start" if request.GET.get("against") == "start" else "incumbent"
    return against, "split" if view == "split" else "unified"


@require_safe
def attempt(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    shown = found(pk, number)
    against, view = wanted_diff(request)
    siblings = shown.campaign.attempts
    context = {
        **evidence(shown),
        "diff": difference(shown, against),
        "diff_view": view,
        "history": history(shown),
        "asked": asked(shown),
        "previous": siblings.filter(number__lt=number).order_by("-number").first(),
        "next": siblings.filter(number__gt=number).order_by("number").first(),
    }
    return render(request, "attempts/detail.html", context)


def asked(shown: Attempt) -> dict[str, Any]:
    """What its model was given and counted; empty where none was asked."""
    return {
        "calls": shown.model_calls.all(),
        "cards": shown.cards.all(),
        "check_seconds": shown.check_seconds,
    }


@require_safe
def diff(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The diff alone, when its side or its view is changed. The view is kept in a cookie."""
    shown = found(pk, number)
    against, view = wanted_diff(request)
    context = {"attempt": shown, "diff": difference(shown, against), "diff_view": view}
    response = render(request, "attempts/_diff.html", context)
    response.set_cookie("diff", view, max_age=365 * 24 * 3600, samesite="Lax", httponly=True)
    return response


@require_safe
def peek(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """What a row of the campaign's page shows when it grows: reason, flags, rationale, diff."""
    shown = found(pk, number)
    context = {
        "attempt": shown,
        "diff": difference(shown),
        "diff_view": "unified",
        "flags": flags_of(shown),
        "peek": True,
    }
    return render(request, "campaigns/_peek.html", context)


@require_safe
def report(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    shown = found(pk, number)
    if not shown.report:
        raise Http404("This attempt has no report.")
    name = f"campaign-{pk}-attempt-{number}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(shown.report, content_type="application/json", headers=headers)


def flag_part(request: HttpRequest, flag: Flag, problem: str, typed: str, status: int) -> HttpResponse:
    item = next(item for item in flags_of(flag.attempt) if item["flag"].pk == flag.pk)
    response = render(
        request, "attempts/_flag.html", {"item": item, "flag_problem": problem, "flag_typed": typed}, status=status
    )
    if status == 200:
        response["HX-Trigger"] = "flag-decided"  # what holds an approval back may be gone
    return response
