"""Start, pause, resume, stop, steer: what a person does to a campaign."""

from __future__ import annotations

import unicodedata

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from campaigns import dispatch, progress
from campaigns.models import Campaign, Event, Idea, State, Steering

from .errors import ActionError, refuse_imported

TEXT_LIMIT = 20_000


def start(campaign: Campaign, person: User | None) -> None:
    refuse_imported(campaign)
    with transaction.atomic():
        if not campaign.move(to=State.QUEUED, from_=(State.DRAFT,)):
            raise ActionError(f"The campaign is {campaign.state} already, and is started only once.")
        Event.record(campaign.pk, "campaign.queued", by=name(person))
        transaction.on_commit(lambda: dispatch.advance(campaign.pk))


def pause(campaign: Campaign, person: User | None) -> None:
    """Let what is under way end, and begin nothing new."""
    refuse_imported(campaign)
    with transaction.atomic():
        campaign.refresh_from_db()
        ran_s = campaign.elapsed().total_seconds()
        if not campaign.move(to=State.PAUSED, from_=(State.QUEUED, State.RUNNING), ran_s=ran_s, resumed_at=None):
            raise ActionError(f"The campaign is {campaign.state}; only a running one can be paused.")
        Event.record(campaign.pk, "campaign.paused", by=name(person))


def resume(campaign: Campaign, person: User | None) -> None:
    refuse_imported(campaign)
    with transaction.atomic():
        if not campaign.move(to=State.RUNNING, from_=(State.PAUSED,), resumed_at=timezone.now()):
            raise ActionError(f"The campaign is {campaign.state}; only a paused one can be resumed.")
        Event.record(campaign.pk, "campaign.running", by=name(person))
        transaction.on_commit(lambda: dispatch.advance(campaign.pk))


def stop(campaign: Campaign, person: User | None) -> None:
    """End it now. Evaluations under way are stopped; what was judged stays."""
    refuse_imported(campaign)
    with transaction.atomic():
        campaign.refresh_from_db()
        if not progress.finish(campaign, State.STOPPED, f"stopped by {name(person) or 'a person'}"):
            raise ActionError(f"The campaign has ended already: {campaign.state}.")


def add_idea(campaign: Campaign, person: User | None, text: str) -> Idea:
    refuse_imported(campaign)
    text = checked(text, "idea")
    with transaction.atomic():
        campaign.refresh_from_db()
        if campaign.is_ended:
            raise ActionError("The campaign has ended. Start a new one from this idea.")
        idea = Idea.objects.create(campaign=campaign, text=text, author=person)
        Campaign.objects.filter(pk=campaign.pk).update(exhausted="")
        Event.record(campaign.pk, "idea.added", idea=idea.pk, by=name(person))
        transaction.on_commit(lambda: dispatch.advance(campaign.pk))
    return idea


def strike_idea(idea: Idea, person: User | None) -> None:
    """No more attempts go to it; those that were made stay."""
    refuse_imported(idea.campaign)
    with transaction.atomic():
        if Idea.objects.filter(pk=idea.pk, struck_at=None).update(struck_at=timezone.now()):
            Event.record(idea.campaign_id, "idea.struck", idea=idea.pk, by=name(person))


def steer(campaign: Campaign, person: User | None, text: str) -> Steering:
    refuse_imported(campaign)
    text = checked(text, "note")
    with transaction.atomic():
        campaign.refresh_from_db()
        if campaign.is_ended:
            raise ActionError("The campaign has ended; nobody would read the note.")
        steering = Steering.objects.create(campaign=campaign, text=text, author=person)
        Event.record(campaign.pk, "campaign.steered", text=text[:500], by=name(person))
    return steering


def checked(text: str, what: str) -> str:
    text = text.replace("\x00", "").strip()
    if not any(unicodedata.category(letter)[0] in "LNPS" for letter in text):  # nothing, or nothing that is drawn
        raise ActionError(f"The {what} is empty. Say it in a sentence.")
    if len(text) > TEXT_LIMIT:
        raise ActionError(f"The {what} has {len(text):,} characters; {TEXT_LIMIT:,} is the limit.")
    return text


def name(person: User | None) -> str:
    return person.get_username() if person else ""
