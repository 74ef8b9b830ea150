"""From an attempt that has only a number to one that holds a candidate."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import msgspec
from django.conf import settings
from django.db import connections, transaction
from django.db.models import Q
from django.utils import timezone

from campaigns import dispatch, notify, progress
from campaigns.harness.candidate import normalised_sha256
from campaigns.harness.problem import load_problem
from campaigns.models import Attempt, Campaign, Event, Phase, State
from campaigns.proposers import registry
from campaigns.proposers.base import Exhausted, PastAttempt, Proposal, ProposerError, Task

log = logging.getLogger(__name__)

MAX_FAILURES = 3
"""Retryable failures of the proposer in a row before its campaign is stopped as failed."""


def propose(attempt_id: int) -> None:
    """Fill one attempt, unless another worker is at it or it is done already."""
    claim = str(uuid.uuid4())
    if not take(attempt_id, claim):
        return
    attempt = Attempt.objects.select_related("campaign", "idea").get(pk=attempt_id)
    campaign = attempt.campaign
    try:
        with heartbeat(attempt_id, claim):
            proposer = registry.make(campaign.agent, campaign.agent_options)
            on_text = partial(notify.text, campaign.pk, attempt.number)
            proposal = proposer.propose(task_for(attempt), on_text=on_text, should_stop=lambda: is_over(attempt_id, claim))
    except Exhausted as error:
        retire(attempt, claim, str(error))
    except ProposerError as error:
        fail(attempt, claim, error)
    else:
        accept(attempt, claim, proposal)
    progress.advance(campaign.pk)


def take(attempt_id: int, claim: str) -> bool:
    """Claim the attempt, if nobody's heartbeat says that they are at it."""
    old = timezone.now() - timedelta(seconds=settings.LOST_AFTER_S)
    free = Q(heartbeat_at=None) | Q(heartbeat_at__lt=old)
    mine = Attempt.objects.filter(free, pk=attempt_id, phase=Phase.PROPOSING)
    return mine.update(claim=claim, heartbeat_at=timezone.now()) == 1


def is_over(attempt_id: int, claim: str) -> bool:
    """Whether nobody waits for this proposal any more: its campaign has ended, or another worker has taken it over."""
    return not Attempt.objects.filter(pk=attempt_id, claim=claim, phase=Phase.PROPOSING).exists()


@contextmanager
def heartbeat(attempt_id: int, claim: str) -> Iterator[None]:
    done = threading.Event()

    def beat() -> None:
        try:
            while not done.wait(settings.HEARTBEAT_S):
                Attempt.objects.filter(pk=attempt_id, claim=claim).update(heartbeat_at=timezone.now())
        finally:
            connections.close_all()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def task_for(attempt: Attempt) -> Task:
    """All that the proposer may know: no hidden workload, no reference, no seed."""
    campaign = attempt.campaign
    problem = load_problem(campaign.problem_files)
    past = campaign.attempts.exclude(pk=attempt.pk).exclude(phase=Phase.DROPPED).exclude(files={})
    return Task(
        problem=problem.name,
        title=problem.title,
        summary=problem.summary,
        readme=campaign.problem_files.get("README.md", ""),
        backend=campaign.backend,
        hardware=campaign.hardware,
        idea=attempt.idea.text if attempt.idea else "",
        steering=tuple(campaign.steerings.values_list("text", flat=True)),
        rules=campaign.rules,
        context="",
        region=campaign.region_context,
        incumbent=campaign.incumbent_candidate(),
        start=campaign.start_candidate(),
        attempts=tuple(past_attempt(a) for a in past.prefetch_related("reviews")),
        number=attempt.number,
    )


def past_attempt(attempt: Attempt) -> PastAttempt:
    rejection = next((r.reason for r in attempt.reviews.all() if r.decision == "rejected"), "")
    return PastAttempt(
        number=attempt.number,
        verdict=attempt.verdict,
        speedup=attempt.speedup,
        over_incumbent=attempt.over_incumbent,
        title=attempt.title,
        reason=attempt.reason + (f" Rejected by a person: {rejection}" if rejection else ""),
        parameters=attempt.parameters,
        candidate=attempt.candidate(),
        is_incumbent=attempt.pk == attempt.campaign.incumbent_id,
    )


def accept(attempt: Attempt, claim: str, proposal: Proposal) -> None:
    """Write the candidate, if this claim still holds the attempt."""
    with transaction.atomic():
        written = Attempt.objects.filter(pk=attempt.pk, claim=claim, phase=Phase.PROPOSING).update(
            phase=Phase.READY,
            title=proposal.title[:300],
            rationale=proposal.rationale,
            backend=proposal.candidate.backend,
            files=dict(proposal.candidate.files),
            parameters=dict(proposal.parameters),
            source_sha256=normalised_sha256(proposal.candidate),
            proposer=attempt.campaign.agent,
            usage=msgspec.to_builtins(proposal.usage) if proposal.usage else {},
            proposed_at=timezone.now(),
        )
        if written:
            Event.record(attempt.campaign_id, "attempt.proposed", attempt)


def retire(attempt: Attempt, claim: str, reason: str) -> None:
    """The proposer has nothing more to offer: drop the attempt, and ask for no other one."""
    with transaction.atomic():
        if not is_over(attempt.pk, claim):
            progress.drop(attempt, f"the agent has nothing more to offer: {reason}")
            Campaign.objects.filter(pk=attempt.campaign_id).update(exhausted=reason[:500])
            Event.record(attempt.campaign_id, "campaign.exhausted", reason=reason[:500])


def fail(attempt: Attempt, claim: str, error: ProposerError) -> None:
    """Drop the attempt. What cannot be retried, or failed too often in a row, ends the campaign with its reason."""
    log.warning("%s: the proposer failed: %s", attempt, error)
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=attempt.campaign_id)
        if is_over(attempt.pk, claim):
            return
        progress.drop(attempt, f"the agent failed: {error}")
        last = campaign.attempts.exclude(phase__in=(Phase.PROPOSING,)).order_by("-number")[:MAX_FAILURES]
        in_a_row = all(a.phase == Phase.DROPPED for a in last) and len(last) == MAX_FAILURES
        if not error.retryable or in_a_row:
            progress.finish(campaign, State.FAILED, f"the agent failed: {error}")
