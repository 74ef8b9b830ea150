from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from profiling import comparing
from profiling.compare import NoSuchRange
from profiling.models import Profile, State
from profiling.opened import Gone, store_of
from profiling.views.page import timeline_setup

MAX_OFFERED = 300
MAX_SHOWN = 60
NO_TIMELINE = "ncu-rep"
"""The format of Nsight Compute's reports: each launch was measured by itself, so there is nothing to lay side by side."""


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """``?a=&b=[&range=][&range_b=]``: two profiles above each other. Without ``b``, a form to choose it."""
    a, b = (chosen(request.GET.get(side, "")) for side in ("a", "b"))
    range_a = request.GET.get("range", "")[:500]
    range_b = request.GET.get("range_b", range_a)[:500]
    context: dict[str, Any] = {"a": a, "b": b, "range_a": range_a, "range_b": range_b}
    chosen_ones = [profile.pk for profile in (a, b) if profile]
    ready = Profile.objects.filter(~Q(format=NO_TIMELINE) | Q(pk__in=chosen_ones), state=State.READY)
    context["offered"] = ready.defer("summary", "findings")[:MAX_OFFERED]
    status = 200
    try:
        context["choices_a"], context["choices_b"] = (comparing.choices(p) if p else [] for p in (a, b))
        if a and b:
            context["result"] = comparing.compared(a, b, range_a, range_b)
            context["timelines"] = timelines(a, b, context["result"])
    except (NoSuchRange, Gone) as error:
        context["error"], status = str(error), 422
    unknown = [side for side, found in (("a", a), ("b", b)) if request.GET.get(side) and found is None]
    if unknown:
        context["error"], status = f"No profile that is ready has the id given as {' and '.join(unknown)}.", 404
    if "application/json" in request.headers.get("Accept", ""):
        answer = context.get("result") or {"error": context.get("error", "Give two ready profiles: ?a=ID&b=ID.")}
        return JsonResponse(answer, status=status if "error" not in answer else 422)
    context["sides"] = [("a", a, context.get("choices_a"), range_a), ("b", b, context.get("choices_b"), range_b)]
    context |= {"shown": f":{MAX_SHOWN}", "MAX_SHOWN": MAX_SHOWN}
    if result := context.get("result"):
        context["figures"] = [("A", result["a"]), ("B", result["b"])]
        context["on_gpu"] = result["a"]["on_gpu"] or result["b"]["on_gpu"]
    return render(request, "profiling/compare.html", context, status=status)


def chosen(pk: str) -> Profile | None:
    """The ready profile of an id; None where the text is none."""
    try:
        return Profile.objects.filter(pk=pk, state=State.READY).first() if pk else None
    except (ValidationError, ValueError):
        return None


def timelines(a: Profile, b: Profile, result: dict[str, Any]) -> dict[str, Any]:
    """What the script starts from: both setups, and the time (ns) in each that stands at 0 of the common axis."""
    setups = [timeline_setup(profile, store_of(profile)) for profile in (a, b)]
    for setup, side, profile in zip(setups, (result["a"], result["b"]), (a, b), strict=True):
        setup["origin"] = side["start_ns"]
        setup["name"] = profile.name
        setup["length"] = max(1, side["typical_ns"])
        setup["page"] = reverse("profile", args=[profile.pk])
    return {"a": setups[0], "b": setups[1], "span": max(setup["length"] for setup in setups)}
