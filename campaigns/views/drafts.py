"""Ideas that a model drafted from a profile, for a person to take, edit or strike."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from autoresearch_web import access
from campaigns import drafting
from campaigns.models import DraftState, IdeaDraft
from campaigns.presenters import choices
from campaigns.proposers import registry
from profiling.models import Profile

from .replies import act_and_tell, attempted


@require_safe
def drafts(request: HttpRequest, profile: UUID) -> HttpResponse:
    found = get_object_or_404(Profile, pk=profile)
    shown = found.idea_drafts.exclude(state=DraftState.STRUCK).select_related("asked_by", "decided_by")
    context = {
        "profile": found,
        "drafts": shown,
        "waiting": any(draft.state == DraftState.ASKED for draft in shown),
        "agents": [(name, registry.PROPOSERS[name].title) for name in registry.MODELS],
        "endpoints": choices.endpoints(),
    }
    return render(request, "context/_drafts.html" if request.GET.get("part") else "context/drafts.html", context)


@require_POST
def ask(request: HttpRequest, profile: UUID) -> HttpResponse:
    found = get_object_or_404(Profile, pk=profile)
    given = {key: request.POST.get(key, "").strip() for key in ("model", "endpoint")}
    options = {key: value for key, value in given.items() if value}
    agent, by = request.POST.get("agent", ""), access.person(request)
    done = "Asked. The drafts appear here; nothing starts from them by itself."
    return act_and_tell(
        request, lambda: drafting.ask(found, agent, options, by), done, request.path.removesuffix("ask")
    )


@require_POST
def decide(request: HttpRequest, profile: UUID, pk: int) -> HttpResponse:
    """Strike it, or take it along to a new campaign's form."""
    draft = get_object_or_404(IdeaDraft, pk=pk, profile_id=profile)
    verb, text, by = request.POST.get("verb", ""), request.POST.get("text", ""), access.person(request)
    back = f"/context/drafts/{profile}/"
    if verb != "take":
        return act_and_tell(request, lambda: drafting.decide(draft, verb, text, by), "Struck.", back)
    problem, ok = attempted(lambda: drafting.decide(draft, verb, text, by))
    if not ok:
        return act_and_tell(request, lambda: drafting.decide(draft, verb, text, by), problem, back)
    draft.refresh_from_db()
    return redirect(f"/campaigns/new?{urlencode({'idea': draft.text})}")
