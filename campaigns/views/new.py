from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from autoresearch_web import access
from campaigns import actions
from campaigns.actions import ActionError
from campaigns.actions.create import usual
from campaigns.forms import NewCampaignForm
from campaigns.models import Campaign, Gate, Policy
from campaigns.presenters import choices
from campaigns.proposers import registry
from campaigns.proposers.base import ProposerError
from profiling.models import Region

from .replies import attempted


@require_http_methods(["GET", "HEAD", "POST"])
def new_campaign(request: HttpRequest) -> HttpResponse:
    """Idea to running: POST creates the campaign and starts it. A refusal shows the form with everything as typed."""
    if request.method != "POST":
        return show(request, NewCampaignForm(initial=first_values(request)))
    form = NewCampaignForm(request.POST)
    if not form.is_valid():
        return show(request, form, status=422)
    try:
        registry.make(form.cleaned_data["agent"], form.agent_options())
        campaign = actions.create(form.as_new(), access.person(request))
    except (ActionError, ProposerError) as error:
        form.add_error(None, str(error))
        return show(request, form, status=422)
    if request.POST.get("later"):
        return redirect(campaign)
    return started(request, campaign)


def started(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    problem, _ = attempted(lambda: actions.start(campaign, access.person(request)))
    if problem:
        messages.warning(request, problem)
    return redirect(campaign)


def first_values(request: HttpRequest) -> dict[str, Any]:
    """The defaults, with what the address says: ``?region=`` brings its note along as the idea."""
    names = [p.name for p in choices.problems() if not p.error]
    region = region_of(request.GET.get("region", ""))
    wanted = request.GET.get("problem", "")
    if wanted not in names:
        wanted = (choices.suggested(region.as_context(), names) if region else "") or next(iter(names), "")
    hardware = choices.hardware().for_devices(choices.problem(wanted).devices)
    backend = usual_backend(choices.problem(wanted), hardware)
    return {
        "problem": wanted,
        "idea": request.GET.get("idea") or (region.note if region else ""),
        "hardware": hardware,
        "backend": backend,
        "agent": "external" if choices.nothing_to_turn(wanted, backend) else registry.names()[0],
        "rules": choices.default_rules(),
        "gate": Gate.AUTO,
        "budget_attempts": 40,
        "region": region.pk if region else None,
    }


def usual_backend(chosen: choices.ProblemChoice, hardware: str) -> str:
    return usual([name for name, _ in chosen.backends], hardware) or ""


def region_of(text: str) -> Region | None:
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        return None
    return Region.objects.select_related("profile").filter(pk=text).first()


def show(request: HttpRequest, form: NewCampaignForm, status: int = 200) -> HttpResponse:
    region = region_of(str(form["region"].value() or ""))
    problems = choices.problems()
    guess = choices.suggested(region.as_context(), [p.name for p in problems]) if region else ""
    context = {
        "form": form,
        "problems": problems,
        "chosen": choices.problem(str(form["problem"].value() or "")),
        "agents": choices.agents(),
        "hardware": choices.hardware(),
        "guessed": bool(guess) and guess == form["problem"].value() and request.method != "POST",
        "gates": Gate.choices,
        "policies": Policy.choices,
        "endpoints": choices.endpoints(),
        "replay_root": choices.replay_root(),
        "replay_folders": choices.replay_folders(),
        "region": region,
        "region_missing": bool(request.GET.get("region")) and region is None,
    }
    return render(request, "campaigns/new.html", context, status=status)


@require_safe
def problem_part(request: HttpRequest) -> HttpResponse:
    """Backends and baselines of the problem that was just chosen, the backend being the usual one of the hardware."""
    chosen = choices.problem(request.GET.get("problem", ""))
    backend = usual_backend(chosen, request.GET.get("hardware") or "cpu")
    context = {"chosen": chosen, "form": NewCampaignForm(initial={"backend": backend, **request.GET.dict()})}
    return render(request, "campaigns/_problem_fields.html", context)
