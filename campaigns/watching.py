"""Find what was lost with a killed process and set it going again. Runs every few seconds; finds nothing, mostly."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from campaigns import conclusion, dispatch, progress
from campaigns.models import Attempt, Campaign, Phase, State
from profiling.silence import clock, is_silent, silent

log = logging.getLogger(__name__)


def watch() -> None:
    if not clock.was_set():
        find_lost()
    for pk in Campaign.objects.filter(state__in=(State.QUEUED, State.RUNNING)).values_list("pk", flat=True):
        progress.advance(pk)


def find_lost() -> None:
    for attempt in silent_proposals():
        log.warning("proposal %s fell silent; giving it to another worker", attempt)
        dispatch.propose(attempt.pk)
    for attempt in Attempt.objects.filter(phase=Phase.EVALUATING).select_related("campaign"):
        look_after(attempt)


def silent_proposals() -> list[Attempt]:
    unclaimed = Q(heartbeat_at=None) & silent("created_at", settings.LOST_AFTER_S)
    unheard = unclaimed | silent("heartbeat_at", settings.LOST_AFTER_S)
    return list(Attempt.objects.filter(Q(phase=Phase.PROPOSING) & unheard))


def look_after(attempt: Attempt) -> None:
    """Conclude an evaluation whose message was lost, or send it out again when its worker is gone."""
    if dispatch.report_of(attempt.ticket):
        conclusion.conclude(attempt.ticket)
        return
    quiet_since = attempt.evaluation_started_at or attempt.sent_at or attempt.created_at
    if not is_silent(quiet_since, settings.LOST_AFTER_S):
        return
    if dispatch.alive(attempt.ticket) or dispatch.is_waiting(attempt.ticket, attempt.campaign.queue):
        return
    if dispatch.report_of(attempt.ticket):  # it came between the two looks
        conclusion.conclude(attempt.ticket)
    elif attempt.tries >= dispatch.MAX_TRIES:
        conclusion.give_up(attempt, f"{attempt.tries} evaluators were lost while they measured it")
    else:
        log.warning("evaluation of %s was lost with its worker; sending it out again", attempt)
        with transaction.atomic():
            progress.send_out(attempt, from_=Phase.EVALUATING, reason="its worker was lost")
