"""The Stack page: how gains compound."""

from __future__ import annotations

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from autoresearch_web import access
from campaigns.actions import ActionError
from campaigns.harness.errors import ProblemError
from campaigns.models import StackMeasurement
from campaigns.presenters import stack as presenter
from campaigns.scenarios import catalogue, stacking

from .replies import act_and_tell


@require_safe
def stack(request: HttpRequest) -> HttpResponse:
    try:
        return render(request, "stack/page.html", {"scenarios": presenter.scenarios()})
    except ProblemError as error:
        return render(request, "stack/page.html", {"scenarios": [], "problem": str(error)}, status=500)


@require_safe
def part(request: HttpRequest, name: str) -> HttpResponse:
    """One scenario, asked for again while it is measured."""
    return render(request, "stack/_scenario.html", {"s": presenter.scenario(known(name))})


@require_POST
def measure(request: HttpRequest, name: str) -> HttpResponse:
    known(name)
    done = f"{name} is being measured. It takes a minute or more; this page shows it by itself."
    return act_and_tell(request, lambda: stacking.ask(name, access.person(request)), done, "/stack/")


@require_POST
def together(request: HttpRequest, name: str) -> HttpResponse:
    """Candidates that were not told apart alone are tried together."""
    known(name)
    chosen = [int(text) for text in request.POST.getlist("attempt") if re.fullmatch("[0-9]{1,17}", text)]
    done = f"They are tried together in {name}. It takes a minute or more; this page shows it by itself."
    return act_and_tell(request, lambda: stacking.try_together(name, chosen, access.person(request)), done, "/stack/")


@require_POST
def stop(request: HttpRequest, name: str) -> HttpResponse:
    known(name)

    def act() -> None:
        if not stacking.stop_waiting(name, f"stopped by {request.user.get_username()}"):
            raise ActionError(f"No measurement of {name} is under way.")

    return act_and_tell(request, act, f"Stopped the measurement of {name}.", "/stack/")


@require_safe
def report(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(StackMeasurement.objects.exclude(report=""), pk=pk)
    headers = {"Content-Disposition": f'attachment; filename="stack-{pk}.json"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(row.report, content_type="application/json", headers=headers)


def known(name: str) -> str:
    if name not in catalogue.names():
        raise Http404("no such scenario")
    return name
