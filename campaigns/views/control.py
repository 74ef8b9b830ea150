"""What a person does to a campaign. POST only; the verbs are ``campaigns.actions``."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from autoresearch_web import access
from campaigns import actions
from campaigns.models import Campaign, Flag, Idea
from campaigns.proposers import registry

from .replies import act_and_tell, attempted


@require_POST
def control(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    campaign = get_object_or_404(Campaign, pk=pk)
    act, done = {
        "start": (actions.start, "Started."),
        "pause": (actions.pause, "Paused: what is under way ends, nothing new begins."),
        "resume": (actions.resume, "Resumed."),
        "stop": (actions.stop, "Stopped. What was judged stays."),
    }[verb]
    return act_and_tell(request, lambda: act(campaign, access.person(request)), done, campaign.get_absolute_url())


@require_POST
def steer(request: HttpRequest, pk: int) -> HttpResponse:
    campaign = get_object_or_404(Campaign, pk=pk)
    text = request.POST.get("text", "")
    heard = registry.reads(campaign.agent)
    done = (
        "Noted. Every proposal from now on reads it."
        if heard
        else f"Noted. The {campaign.agent} reads no notes: it is for people."
    )
    return act_and_tell(
        request, lambda: actions.steer(campaign, access.person(request), text), done, campaign.get_absolute_url()
    )


@require_POST
def add_idea(request: HttpRequest, pk: int) -> HttpResponse:
    campaign = get_object_or_404(Campaign, pk=pk)
    text = request.POST.get("text", "")
    heard = registry.reads(campaign.agent)
    done = f"Added. It takes its turn at the next proposal{'' if heard else f', though the {campaign.agent} reads no idea'}."
    return act_and_tell(
        request, lambda: actions.add_idea(campaign, access.person(request), text), done, campaign.get_absolute_url()
    )


@require_POST
def strike_idea(request: HttpRequest, pk: int) -> HttpResponse:
    number = request.POST.get("idea", "")
    if not (number.isascii() and number.isdigit() and len(number) < 18):
        raise Http404("no such idea")
    idea = get_object_or_404(Idea, campaign_id=pk, pk=number)
    done = "Struck: no more attempts go to it; those that were made stay."
    return act_and_tell(
        request, lambda: actions.strike_idea(idea, access.person(request)), done, idea.campaign.get_absolute_url()
    )


@require_POST
def decide_flag(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm or dismiss a flag. htmx gets the flag again, with what was typed when it was refused."""
    from .attempts import flag_part

    flag = get_object_or_404(Flag.objects.select_related("attempt__campaign"), pk=pk)
    state, reason = request.POST.get("state", ""), request.POST.get("reason", "")

    def act() -> object:
        return actions.decide_flag(flag, access.person(request), state=state, reason=reason)

    if not request.headers.get("HX-Request"):
        return act_and_tell(request, act, f"The flag is {state}.", flag.attempt.get_absolute_url())
    problem, ok = attempted(act)
    return flag_part(request, flag, problem, "" if ok else reason, 200 if ok else 409)
