"""From an attempt that has only a number to one that holds a candidate."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import msgspec
from django.conf import settings
from django.db import connections, transaction
from django.db.models import Q
from django.utils import timezone

from campaigns import briefing, desks, handover, memory, notify, progress
from campaigns.context import library
from campaigns.context.cards import Card
from campaigns.harness.candidate import normalised_sha256
from campaigns.harness.problem import load_problem
from campaigns.memory import lessons
from campaigns.models import Attempt, Campaign, Event, Idea, Phase, State, Verdict
from campaigns.proposers import registry
from campaigns.proposers.base import Exhausted, IdeaSpent, PastAttempt, Proposal, ProposerError, ShouldStop, Task
from campaigns.redaction import reason_of
from profiling.silence import silent

log = logging.getLogger(__name__)

MAX_KNOWN_POINTS = 64
"""Points known from earlier campaigns that the tuner may name before one of them is taken as it is."""
FAILED = "the agent failed"
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
            agent, proposal = ask(attempt, claim)
    except IdeaSpent as error:
        spend_idea(attempt, claim, str(error))
    except Exhausted as error:
        retire(attempt, claim, str(error))
    except ProposerError as error:
        fail(attempt, claim, error)
    except Exception as error:  # a fault of ours: told like any other, or its campaign would hang for ever
        log.exception("%s: proposing failed", attempt)
        fail(attempt, claim, ProposerError(f"{type(error).__name__}: {str(error)[:300]}", retryable=True))
    else:
        accept(attempt, claim, proposal, agent)
    progress.advance(campaign.pk)


def ask(attempt: Attempt, claim: str) -> tuple[str, Proposal]:
    """A proposal, and whose: the campaign's agent's, or the tuner's where a model left numbers to be turned."""
    campaign = attempt.campaign
    on_text = partial(notify.text, campaign.pk, attempt.number)

    def should_stop() -> bool:
        return is_over(attempt.pk, claim)

    cards = library.chosen_for(campaign)
    task = task_for(attempt, cards)
    if promising := handover.to_tune(campaign):
        with suppress(Exhausted):
            return "tuner", turned(attempt, replace(task, incumbent=promising), should_stop)
    if campaign.agent == "tuner":
        return "tuner", turned(attempt, task, should_stop)
    proposer = registry.make(campaign.agent, campaign.agent_options)
    if hasattr(proposer, "desk"):
        proposer.desk = desks.desk_for(attempt, cards)
    return campaign.agent, proposer.propose(task, on_text=on_text, should_stop=should_stop)


def turned(attempt: Attempt, task: Task, should_stop: ShouldStop) -> Proposal:
    """The tuner's next point that an earlier campaign has not shown to be a dead end; it is told of those it names."""
    tuner = registry.make("tuner", attempt.campaign.agent_options if attempt.campaign.agent == "tuner" else {})
    for known in range(MAX_KNOWN_POINTS):
        proposal = tuner.propose(task, should_stop=should_stop)
        if should_stop() or not memory.refusal(attempt.campaign, proposal.candidate, besides=attempt.pk):
            break
        dead_end = PastAttempt(number=-1 - known, verdict=Verdict.NO_MEASUREMENT, candidate=proposal.candidate)
        task = replace(task, attempts=(*task.attempts, dead_end))
    return proposal


def take(attempt_id: int, claim: str) -> bool:
    """Claim the attempt, if nobody's heartbeat says that they are at it."""
    free = Q(heartbeat_at=None) | silent("heartbeat_at", settings.LOST_AFTER_S)
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


def task_for(attempt: Attempt, cards: list[Card] | None = None) -> Task:
    """All that the proposer may know: no hidden workload, no reference, no seed."""
    campaign = attempt.campaign
    cards = library.chosen_for(campaign) if cards is None else cards
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
        rules=campaign.rules or briefing.default_rules(),
        context=briefing.context(cards),
        interface=briefing.interface(problem, campaign),
        lessons=tuple(lessons.told(lesson) for lesson in lessons.lessons_for(campaign)),
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
        reason=reason_of(attempt) + (f" Rejected by a person: {rejection}" if rejection else ""),
        parameters=attempt.parameters,
        candidate=attempt.candidate(),
        is_incumbent=attempt.pk == attempt.campaign.incumbent_id,
    )


def accept(attempt: Attempt, claim: str, proposal: Proposal, agent: str) -> None:
    """Write the candidate, if this claim still holds the attempt. One that was judged before is not judged again."""
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=attempt.campaign_id)
        refused = memory.refusal(campaign, proposal.candidate, besides=attempt.pk)
        now = timezone.now()
        verdict = {
            "phase": Phase.JUDGED,
            "verdict": Verdict.DUPLICATE,
            "judged_at": now,
            "reason": f"Not measured: {refused}",
        }
        written = Attempt.objects.filter(pk=attempt.pk, claim=claim, phase=Phase.PROPOSING).update(
            **(verdict if refused else {"phase": Phase.READY}),
            title=proposal.title[:300],
            rationale=proposal.rationale,
            backend=proposal.candidate.backend,
            files=dict(proposal.candidate.files),
            parameters=dict(proposal.parameters),
            source_sha256=normalised_sha256(proposal.candidate),
            canonical_sha256=memory.canonical_sha256(proposal.candidate),
            structure_sha256=memory.structure_sha256(proposal.candidate),
            proposer=agent,
            usage=msgspec.to_builtins(proposal.usage) if proposal.usage else {},
            proposed_at=now,
        )
        if written:
            Event.record(attempt.campaign_id, "attempt.proposed", attempt)
        if written and refused:
            Event.record(attempt.campaign_id, "attempt.judged", attempt, verdict=Verdict.DUPLICATE)


def spend_idea(attempt: Attempt, claim: str, reason: str) -> None:
    """The agent holds that this idea cannot work: drop the attempt, and go on with the others, if there are any."""
    with transaction.atomic():
        if is_over(attempt.pk, claim):
            return
        progress.drop(attempt, f"the agent holds that the idea cannot work: {reason}")
        if attempt.idea_id:
            Idea.objects.filter(pk=attempt.idea_id).update(spent=reason)
            Event.record(attempt.campaign_id, "idea.spent", attempt, idea=attempt.idea_id, reason=reason[:500])
        if not progress.arms(attempt.campaign):
            Campaign.objects.filter(pk=attempt.campaign_id).update(exhausted=reason[:500])
            Event.record(attempt.campaign_id, "campaign.exhausted", reason=reason[:500])


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
        progress.drop(attempt, f"{FAILED}: {error}")
        last = campaign.attempts.exclude(phase__in=(Phase.PROPOSING,)).order_by("-number")[:MAX_FAILURES]
        in_a_row = (
            all(a.phase == Phase.DROPPED and a.reason.startswith(FAILED) for a in last) and len(last) == MAX_FAILURES
        )
        if not error.retryable or in_a_row:
            progress.finish(campaign, State.FAILED, f"{FAILED}: {error}"[:500])
