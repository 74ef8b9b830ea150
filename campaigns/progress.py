"""Bring a campaign forward by one step: read its state, ask ``loop``, write what follows. Safe to call at any time."""

from __future__ import annotations

import math
import uuid

from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from campaigns import dispatch, loop, money, policy
from campaigns.models import Attempt, Campaign, Event, Idea, Phase, Policy, State, Verdict
from campaigns.models.attempt import IN_FLIGHT
from campaigns.proposers import registry


def situation(campaign: Campaign) -> loop.Situation:
    by_phase = dict(campaign.attempts.values_list("phase").annotate(n=Count("id")))
    best = campaign.best()
    total = money.of_campaign(campaign)
    return loop.Situation(
        state=campaign.state,
        gate=campaign.gate,
        parallel=campaign.parallel,
        proposing=by_phase.get(Phase.PROPOSING, 0),
        ready=by_phase.get(Phase.READY, 0),
        evaluating=by_phase.get(Phase.EVALUATING, 0),
        judged=by_phase.get(Phase.JUDGED, 0),
        waiting_for_review=campaign.waiting_for_review(),
        budget_attempts=campaign.budget_attempts,
        budget_s=campaign.budget_seconds,
        elapsed_s=campaign.elapsed().total_seconds(),
        best_speedup=best.speedup if best else None,
        target_speedup=campaign.target_speedup,
        exhausted=campaign.exhausted,
        proposes=registry.proposes(campaign.agent),
        ahead=campaign.proposals_ahead,
        budget_tokens=campaign.budget_tokens,
        spent_tokens=total.tokens,
        budget_usd=campaign.budget_usd,
        spent_usd=float(total.usd),
    )


def advance(campaign_id: int) -> loop.Step:
    """Take the campaign's next step. Two callers at once take it one after the other, each from the state it finds."""
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=campaign_id)
        if campaign.state == State.QUEUED:
            begin(campaign)
        step = loop.next_step(situation(campaign))
        if step.finish:
            finish(campaign, State.FINISHED, step.finish)
        for _ in range(step.propose):
            begin_attempt(campaign)
        for attempt in campaign.attempts.filter(phase=Phase.READY).order_by("number")[: step.evaluate]:
            send_out(attempt)
    return step


def begin(campaign: Campaign) -> None:
    now = timezone.now()
    if campaign.move(to=State.RUNNING, from_=(State.QUEUED,), started_at=now, resumed_at=now):
        Event.record(campaign.pk, "campaign.running")


def begin_attempt(campaign: Campaign) -> Attempt:
    """A new row, under the campaign's lock, so that numbers have no gap and no double."""
    Campaign.objects.filter(pk=campaign.pk).update(attempt_seq=F("attempt_seq") + 1)
    campaign.refresh_from_db(fields=["attempt_seq"])
    attempt = Attempt.objects.create(
        campaign=campaign, number=campaign.attempt_seq, idea=next_idea(campaign), backend=campaign.backend
    )
    Event.record(campaign.pk, "attempt.proposing", attempt)
    transaction.on_commit(lambda: dispatch.propose(attempt.pk))
    return attempt


def next_idea(campaign: Campaign) -> Idea | None:
    """The open idea that the campaign's policy names, or None."""
    choose = policy.by_pay if campaign.policy == Policy.BANDIT else policy.in_turn
    chosen = choose(arms(campaign))
    return None if chosen is None else campaign.ideas.filter(pk=chosen).first()


def arms(campaign: Campaign) -> list[policy.Arm]:
    """What each open idea has had so far."""
    found = []
    for idea in campaign.ideas.filter(struck_at=None, spent=""):
        tried = idea.attempts.exclude(phase=Phase.DROPPED)
        kept = tried.filter(verdict="kept").exclude(decision="rejected").values_list("over_incumbent", flat=True)
        gain = sum(math.log2(over) for over in kept if over and over > 1)
        found.append(policy.Arm(idea=idea.pk, tries=tried.count(), kept=len(kept), gain=gain))
    return found


def send_out(attempt: Attempt, *, from_: Phase = Phase.READY, reason: str = "") -> bool:
    """Give the attempt a new ticket and send it to an evaluator. False: somebody else did.

    A candidate that was sent out before (its worker was lost, or the incumbent changed under it) gets a new ticket;
    whatever the old one still reports is dropped.
    """
    ticket = str(uuid.uuid4())
    old = attempt.ticket
    claimed = Attempt.objects.filter(pk=attempt.pk, phase=from_, ticket=old).update(
        phase=Phase.EVALUATING,
        ticket=ticket,
        tries=F("tries") + 1,
        sent_at=timezone.now(),
        evaluation_started_at=None,
        parent=attempt.campaign.incumbent,
    )
    if claimed:
        attempt.refresh_from_db()
        Event.record(attempt.campaign_id, "attempt.evaluating", attempt, **({"reason": reason} if reason else {}))
        transaction.on_commit(lambda: dispatch.evaluate(attempt))
        if old:
            transaction.on_commit(lambda: dispatch.cancel(old))
    return claimed == 1


def judge_again(attempt: Attempt, reason: str) -> bool:
    """Send a flagged attempt out once more, its dismissed rules with it. False where another blocking flag stands, or
    it is under way already."""
    attempt.refresh_from_db()
    if attempt.open_blocks():
        return False
    flagged = Attempt.objects.filter(pk=attempt.pk, phase=Phase.JUDGED, verdict=Verdict.FLAGGED, ticket=attempt.ticket)
    if not flagged.update(verdict="", reason="", tries=0):
        return False
    return send_out(attempt, from_=Phase.JUDGED, reason=reason)


def finish(campaign: Campaign, state: State, reason: str) -> bool:
    """End the campaign. What is still in flight is dropped and its evaluation stopped."""
    now = timezone.now()
    live = (State.DRAFT, State.QUEUED, State.RUNNING, State.PAUSED)
    ran_s = campaign.elapsed().total_seconds()
    if not campaign.move(to=state, from_=live, state_reason=reason, ended_at=now, ran_s=ran_s, resumed_at=None):
        return False
    for attempt in campaign.attempts.filter(phase__in=IN_FLIGHT):
        drop(attempt, f"the campaign ended: {reason}")
    Event.record(campaign.pk, f"campaign.{state}", reason=reason)
    return True


def drop(attempt: Attempt, reason: str) -> bool:
    """Give an attempt up before its verdict. It stays as a row, and counts nowhere."""
    if not Attempt.objects.filter(pk=attempt.pk, phase__in=IN_FLIGHT).update(phase=Phase.DROPPED, reason=reason):
        return False
    Event.record(attempt.campaign_id, "attempt.dropped", attempt, reason=reason)
    if attempt.ticket:
        transaction.on_commit(lambda: dispatch.cancel(attempt.ticket))
    return True
