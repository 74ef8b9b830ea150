"""From an evaluator's report to a verdict in the database."""

from __future__ import annotations

import logging

import msgspec
from django.db import transaction
from django.utils import timezone

from campaigns import captures, checking, dispatch, judge, memory, progress, remeasuring
from campaigns.harness import report as reports
from campaigns.models import Attempt, Campaign, Event, Flag, FlagState, Measurement, Phase, Verdict

log = logging.getLogger(__name__)


def note_start(ticket: str, host: str) -> None:
    """An evaluator has taken the ticket. A late or second word changes nothing."""
    now = timezone.now()
    waiting = Attempt.objects.filter(ticket=ticket, phase=Phase.EVALUATING, evaluation_started_at=None)
    with transaction.atomic():
        if waiting.update(evaluation_started_at=now, host=host[:200]):
            attempt = Attempt.objects.only("campaign_id").get(ticket=ticket)
            Event.record(attempt.campaign_id, "attempt.begun", attempt)


def conclude(ticket: str) -> None:
    """Judge the report that lies at the broker under ``ticket``. Without a report, or with an old ticket: nothing."""
    if ticket.startswith(checking.PREFIX):  # a quick check: whoever asked for it waits for the report
        return
    if ticket.startswith(remeasuring.PREFIX):
        remeasuring.conclude(ticket)
        return
    raw = dispatch.report_of(ticket)
    attempt = Attempt.objects.filter(ticket=ticket, phase=Phase.EVALUATING).select_related("campaign").first()
    if raw is None or attempt is None:
        if raw is not None:
            dispatch.forget(ticket)
        return
    try:
        report = reports.decode(raw)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        give_up(attempt, f"the evaluator's report could not be read: {error}")
        return
    with transaction.atomic():
        settle(attempt, report)
    dispatch.forget(ticket)
    progress.advance(attempt.campaign_id)


def settle(attempt: Attempt, report: reports.Report) -> None:
    """Write the verdict, unless the measurement has to be taken again."""
    campaign = Campaign.objects.select_for_update().get(pk=attempt.campaign_id)
    judgement = judge.judge(report, kept_with=kept_with(attempt, report))
    if report.outcome == "infrastructure" and attempt.tries < dispatch.MAX_TRIES:
        progress.send_out(attempt, from_=Phase.EVALUATING, reason=report.summary)
        return
    if judgement.verdict == Verdict.KEPT and attempt.parent_id != campaign.incumbent_id:
        # It beat an incumbent that has been beaten since. Only the present one counts.
        attempt.campaign = campaign
        progress.send_out(attempt, from_=Phase.EVALUATING, reason="the incumbent has changed since it was sent out")
        return
    written = write(attempt, report, judgement)
    if judgement.verdict == Verdict.KEPT:
        if not judgement.ranges:  # one that wins on a range only would be a slower incumbent elsewhere
            Campaign.objects.filter(pk=campaign.pk).update(incumbent=attempt)
        if written:
            transaction.on_commit(lambda: captures.ask(attempt))


def kept_with(attempt: Attempt, report: reports.Report) -> reports.Ratio | None:
    """The speed-up over the baseline that the incumbent was kept with. None where it says nothing here: of another
    host, or when a person dismissed the flag that would come of it."""
    parent = attempt.parent
    if parent is None or parent.speedup is None or parent.speedup_lo is None or parent.speedup_hi is None:
        return None
    dismissed = attempt.flags.filter(rule=judge.INCUMBENT_SLOWED, state=FlagState.DISMISSED)
    if parent.host != report.host.name[:200] or dismissed.exists():
        return None
    return reports.Ratio(value=parent.speedup, lo=parent.speedup_lo, hi=parent.speedup_hi)


def write(attempt: Attempt, report: reports.Report, judgement: judge.Judgement) -> bool:
    """Judged, once: the row changes only while it is still under evaluation with the same ticket."""
    speedup, over, noise = judgement.speedup, judgement.over_incumbent, report.noise
    changed = Attempt.objects.filter(pk=attempt.pk, phase=Phase.EVALUATING, ticket=attempt.ticket).update(
        phase=Phase.JUDGED,
        verdict=judgement.verdict,
        reason=judgement.reason,
        report=reports.encode(report).decode(),
        ranges=judgement.ranges,
        host=report.host.name[:200],
        judged_at=timezone.now(),
        speedup=speedup.value if speedup else None,
        speedup_lo=speedup.lo if speedup else None,
        speedup_hi=speedup.hi if speedup else None,
        over_incumbent=over.value if over else None,
        over_incumbent_lo=over.lo if over else None,
        over_incumbent_hi=over.hi if over else None,
        noise_lo=noise.lo if noise else None,
        noise_hi=noise.hi if noise else None,
    )
    if not changed:
        return False
    replace_evidence(attempt, report, judgement)
    attempt.refresh_from_db()
    memory.learn(attempt)
    Event.record(attempt.campaign_id, "attempt.judged", attempt, verdict=attempt.verdict)
    return True


def replace_evidence(attempt: Attempt, report: reports.Report, judgement: judge.Judgement) -> None:
    """Measurements and flags of this judgement. Of an earlier one only the flags stay that a person decided."""
    attempt.measurements.all().delete()
    attempt.flags.filter(state=FlagState.OPEN).delete()
    decided = set(attempt.flags.values_list("rule", flat=True))
    Measurement.objects.bulk_create(measurement(attempt, row) for row in report.workloads)
    new = [f for f in judgement.flags if not (f.data.get("dismissed") and f.rule in decided)]
    Flag.objects.bulk_create(flag(attempt, finding) for finding in new)


def measurement(attempt: Attempt, row: reports.WorkloadResult) -> Measurement:
    speedup, over = row.speedup, row.over_incumbent
    return Measurement(
        attempt=attempt,
        workload=row.name,
        hidden=row.hidden,
        axes=row.axes,
        correct=row.correct,
        error=row.error,
        tolerance=row.tolerance,
        detail=row.detail,
        time_us=row.time_us,
        baseline_us=row.baseline_us,
        incumbent_us=row.incumbent_us,
        floor_us=row.floor_us,
        speedup=speedup.value if speedup else None,
        speedup_lo=speedup.lo if speedup else None,
        speedup_hi=speedup.hi if speedup else None,
        over_incumbent=over.value if over else None,
        over_incumbent_lo=over.lo if over else None,
        over_incumbent_hi=over.hi if over else None,
    )


def flag(attempt: Attempt, finding: reports.Finding) -> Flag:
    return Flag(
        attempt=attempt,
        rule=finding.rule,
        severity=finding.severity,
        evidence=finding.evidence,
        path=finding.path or "",
        line=finding.line,
        data=finding.data,
    )


def give_up(attempt: Attempt, reason: str) -> None:
    """No measurement, and no number: the harness or its host failed, not the candidate."""
    with transaction.atomic():
        changed = Attempt.objects.filter(pk=attempt.pk, phase=Phase.EVALUATING, ticket=attempt.ticket).update(
            phase=Phase.JUDGED, verdict=Verdict.NO_MEASUREMENT, reason=reason, judged_at=timezone.now()
        )
        if changed:
            Event.record(attempt.campaign_id, "attempt.judged", attempt, verdict=Verdict.NO_MEASUREMENT)
    if changed:
        log.warning("%s: %s", attempt, reason)
        progress.advance(attempt.campaign_id)
