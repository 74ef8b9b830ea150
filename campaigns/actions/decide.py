"""Approve, reject, confirm, dismiss: decisions of a person. Each is claimed by a conditional UPDATE: of two people who
decide at once the slower is told who was first."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from campaigns import memory, progress
from campaigns.models import (
    Attempt,
    Campaign,
    Decision,
    Event,
    Flag,
    FlagState,
    RejectKind,
    Review,
    StackMeasurement,
    Verdict,
)

from . import signing
from .control import name
from .errors import ActionError, refuse_imported, some


def approve(
    attempt: Attempt, person: User | None, *, seen: int, sha256: str, range_: dict[str, Any] | None = None
) -> Review:
    """Approve a kept kernel, for a range or everywhere. ``seen`` is the decision that the person had on the screen
    (``Attempt.decision_seq``), ``sha256`` what they were told they sign. Where two signatures are wanted, the first one
    only signs."""
    attempt.refresh_from_db()
    refuse_imported(attempt.campaign)
    if not may_be_decided(attempt):
        raise ActionError(
            f"Attempt {attempt.number} was {attempt.get_verdict_display()}; only kept kernels are approved."
        )
    if blocks := attempt.open_blocks():
        raise ActionError(
            f"{some(blocks, 'blocking flag', 'stands', 'stand')} open. Confirm or dismiss each of them first."
        )
    if sha256 != attempt.signed_sha256(range_):
        raise ActionError("What you saw is no longer what is stored. Look at it again before you sign.")
    decision = signing.decision_of(attempt, person, range_)
    review = record(attempt, person, seen=seen, decision=decision, sha256=sha256, range=range_)
    if decision == Decision.APPROVED:
        transaction.on_commit(lambda: after_approval(review))
    return review


def after_approval(review: Review) -> None:
    """The stacks that the kernel belongs to are measured again; the versions that it was judged with are compared."""
    from campaigns import hosts
    from campaigns.scenarios import stacking

    report = review.attempt.parsed_report()
    if report is not None:
        hosts.check_again(report.host.kind)
    stacking.after_approval(review)


def may_be_decided(attempt: Attempt) -> bool:
    """Kept, or not told apart by itself and measured to hold together with others."""
    return attempt.verdict == Verdict.KEPT or (
        attempt.verdict == Verdict.STACKED
        and (attempt.decision != "" or StackMeasurement.that_held(attempt) is not None)
    )


def reject(attempt: Attempt, person: User | None, *, seen: int, kind: str, reason: str) -> Review:
    """Reject a kept kernel. The campaign goes on from the incumbent before it; the agent reads the reason."""
    attempt.refresh_from_db()
    refuse_imported(attempt.campaign)
    if not may_be_decided(attempt):
        raise ActionError(f"Attempt {attempt.number} was not kept; there is nothing to reject.")
    if kind not in RejectKind.values:
        raise ActionError("Say what kind of reason it is: " + ", ".join(RejectKind.labels))
    return record(
        attempt, person, seen=seen, decision=Decision.REJECTED, sha256=attempt.signed_sha256(), kind=kind, reason=reason
    )


def record(attempt: Attempt, person: User | None, *, seen: int, decision: str, **fields: Any) -> Review:
    with transaction.atomic():
        claimed = Attempt.objects.filter(pk=attempt.pk, decision_seq=seen).update(
            decision=decision, decision_seq=seen + 1
        )
        if not claimed:
            raise ActionError(who_was_first(attempt))
        review = Review.objects.create(attempt=attempt, seq=seen + 1, decision=decision, reviewer=person, **fields)
        Event.record(attempt.campaign_id, f"attempt.{decision}", attempt, by=name(person))
        if decision == Decision.REJECTED:
            step_back(attempt)
        memory.learn_decision(review)
    attempt.refresh_from_db()
    return review


def who_was_first(attempt: Attempt) -> str:
    last = attempt.reviews.order_by("-seq").select_related("reviewer").first()
    if last is None:
        return "The page is out of date. Load it again."
    return f"{name(last.reviewer) or 'Somebody'} was first: {last.decision} it at {last.created_at:%H:%M:%S} UTC."


def step_back(attempt: Attempt) -> None:
    """When the incumbent is rejected, the best kept attempt that nobody rejected takes its place: one that wins everywhere."""
    rest = attempt.campaign.attempts.filter(verdict=Verdict.KEPT, ranges=[]).exclude(decision=Decision.REJECTED)
    best = rest.order_by("-number").first()
    Campaign.objects.filter(pk=attempt.campaign_id, incumbent=attempt).update(incumbent=best)


def decide_flag(flag: Flag, person: User | None, *, state: str, reason: str) -> Flag:
    """Confirm or dismiss an open flag, with a reason that later reviewers see as precedent.

    When no blocking flag of a flagged attempt stands any more it is evaluated again, with the dismissed rules.
    """
    refuse_imported(flag.attempt.campaign)
    if state not in (FlagState.CONFIRMED, FlagState.DISMISSED):
        raise ActionError("A flag is confirmed or dismissed.")
    if not reason.strip():
        raise ActionError("Say why: the next who meets this flag will read it.")
    with transaction.atomic():
        Campaign.objects.select_for_update().get(pk=flag.attempt.campaign_id)  # of two who dismiss the last one sends
        changed = Flag.objects.filter(pk=flag.pk, state=FlagState.OPEN).update(
            state=state, decided_by=person, decided_at=timezone.now(), decision_reason=reason.strip()[:5000]
        )
        if not changed:
            flag.refresh_from_db()
            raise ActionError(f"{name(flag.decided_by) or 'Somebody'} was first: the flag is {flag.state}.")
        flag.refresh_from_db()
        memory.learn_decision(flag)
        Event.record(flag.attempt.campaign_id, f"flag.{state}", flag.attempt, rule=flag.rule, by=name(person))
        if state == FlagState.DISMISSED and flag.severity == "block":
            progress.judge_again(flag.attempt, f"{name(person) or 'a person'} dismissed the flag {flag.rule}")
    flag.refresh_from_db()
    return flag
