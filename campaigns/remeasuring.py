"""A judged attempt measured once more: asked for, sent out, concluded, found again when its worker was lost.

The attempt keeps its verdict and its report, and so what was signed stays what it was. What came of the second
measurement stands beside it, with whether it still holds.
"""

from __future__ import annotations

import logging
import uuid

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from campaigns import dispatch, judge
from campaigns.actions.errors import ActionError, refuse_imported
from campaigns.harness import report as reports
from campaigns.harness.report import Report
from campaigns.models import Attempt, Cause, Event, Remeasurement, RemeasureState, Verdict
from profiling.silence import clock, is_silent

log = logging.getLogger(__name__)
PREFIX = "again-"
"""Of the tickets, by which a conclusion knows that no verdict hangs on the report."""
MEASURED = (Verdict.KEPT, Verdict.STACKED, Verdict.REVERTED)


def ask(attempt: Attempt, person: User | None, cause: str = Cause.PERSON, versions: str = "") -> Remeasurement:
    """Send the attempt to an evaluator again. Raises ``ActionError`` where one is under way, or nothing can be measured."""
    refuse_imported(attempt.campaign)
    if not attempt.verdict or not attempt.files:
        raise ActionError(f"Attempt {attempt.number} has not been judged yet; there is nothing to measure again.")
    ticket = f"{PREFIX}{uuid.uuid4().hex}"[:36]
    try:
        with transaction.atomic():
            row = Remeasurement.objects.create(
                attempt=attempt, cause=cause, versions=versions, ticket=ticket, by=person
            )
            who = person.get_username() if person else ""
            Event.record(attempt.campaign_id, "attempt.remeasuring", attempt, by=who, cause=str(cause))
            transaction.on_commit(lambda: send(row))
    except IntegrityError:
        raise ActionError(f"Attempt {attempt.number} is being measured again already; its result comes here.") from None
    return row


def send(row: Remeasurement) -> None:
    dispatch.evaluate_again(row.attempt, row.ticket)


def conclude(ticket: str) -> None:
    """Take the report that lies at the broker under the ticket. Without one, or when it was taken before: nothing."""
    raw = dispatch.report_of(ticket)
    row = Remeasurement.objects.filter(ticket=ticket, state=RemeasureState.WAITING).select_related("attempt").first()
    if raw is None or row is None:
        if raw is not None:
            dispatch.forget(ticket)
        return
    try:
        report = reports.decode(raw)
    except msgspec.MsgspecError as error:
        end(row, RemeasureState.FAILED, reason=f"the evaluator's report could not be read: {error}")
    else:
        settle(row, report)
    dispatch.forget(ticket)


def settle(row: Remeasurement, report: Report) -> None:
    judgement = judge.judge(report)
    holds, reason = still_holds(row.attempt, report, judgement)
    speedup = report.speedup if judgement.verdict in MEASURED else None
    end(
        row,
        RemeasureState.FAILED if holds is None else RemeasureState.DONE,
        report=reports.encode(report).decode(),
        verdict=judgement.verdict,
        holds=holds,
        reason=reason,
        speedup=speedup.value if speedup else None,
        speedup_lo=speedup.lo if speedup else None,
        speedup_hi=speedup.hi if speedup else None,
    )


def still_holds(attempt: Attempt, report: Report, judgement: judge.Judgement) -> tuple[bool | None, str]:
    """Whether what was said of the attempt is still so, and why. None: this measurement does not say.

    Right, free of blocking findings, no slower than the interval that was stored, and above the baseline if it was.
    """
    if judgement.verdict == Verdict.NO_MEASUREMENT:
        return None, judgement.reason
    if judgement.verdict not in MEASURED:
        return False, f"{str(Verdict(judgement.verdict).label).lower()}: {judgement.reason}"
    now = report.speedup
    if now is None or attempt.speedup_lo is None or attempt.speedup_hi is None:
        return None, "right, but without a speed to compare"
    words = f"{now.value:.3f}× over the baseline ({now.lo:.3f} to {now.hi:.3f})"
    before = f"{attempt.speedup:.3f}× ({attempt.speedup_lo:.3f} to {attempt.speedup_hi:.3f}) before"
    if now.hi < attempt.speedup_lo:
        return False, f"slower than it was: {words}, {before}"
    if attempt.speedup_lo > 1 >= now.lo:
        return False, f"no longer told apart from the baseline: {words}, {before}"
    return True, f"{words}, {before}"


def end(row: Remeasurement, state: RemeasureState, **fields: object) -> bool:
    """Once: a second word about the same ticket changes nothing."""
    waiting = Remeasurement.objects.filter(pk=row.pk, ticket=row.ticket, state=RemeasureState.WAITING)
    with transaction.atomic():
        if not waiting.update(state=state, ended_at=timezone.now(), **fields):
            return False
        Event.record(row.attempt.campaign_id, "attempt.remeasured", row.attempt, holds=fields.get("holds"))
    return True


def stop(row: Remeasurement, person: User | None) -> None:
    who = person.get_username() if person else "a person"
    if not end(row, RemeasureState.STOPPED, reason=f"stopped by {who}"):
        raise ActionError("It has ended already.")
    dispatch.cancel(row.ticket)


def watch() -> None:
    """Conclude what was reported, and send out again what was lost with its worker, a few times."""
    for row in Remeasurement.objects.filter(state=RemeasureState.WAITING).select_related("attempt__campaign"):
        if dispatch.report_of(row.ticket):
            conclude(row.ticket)
        elif is_silent(row.sent_at, settings.LOST_AFTER_S) and not clock.was_set() and not under_way(row):
            look_after(row)


def under_way(row: Remeasurement) -> bool:
    return bool(dispatch.alive(row.ticket)) or dispatch.is_waiting(row.ticket, row.attempt.campaign.queue)


def look_after(row: Remeasurement) -> None:
    if dispatch.report_of(row.ticket):  # it came between the two looks
        conclude(row.ticket)
    elif row.tries >= dispatch.MAX_TRIES:
        end(row, RemeasureState.FAILED, reason=f"{row.tries} evaluators were lost while they measured it")
    else:
        ticket = f"{PREFIX}{uuid.uuid4().hex}"[:36]
        mine = Remeasurement.objects.filter(pk=row.pk, ticket=row.ticket, state=RemeasureState.WAITING)
        if mine.update(ticket=ticket, tries=row.tries + 1, sent_at=timezone.now()):
            log.warning("%s was lost with its worker; sending it out again", row)
            dispatch.cancel(row.ticket)
            row.refresh_from_db()
            send(row)
