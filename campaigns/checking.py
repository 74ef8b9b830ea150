"""Quick checks: a candidate on the visible workloads, by the same evaluators and through the same queue as verdicts."""

from __future__ import annotations

import time
import uuid

import msgspec
import redis
from django.conf import settings
from django.db.models import F
from kombu.exceptions import OperationalError

from autoresearch_web.celery import app
from campaigns import dispatch
from campaigns.harness import report as reports
from campaigns.harness.report import Report
from campaigns.harness.request import CandidateSource, EvaluationRequest
from campaigns.models import Attempt
from campaigns.proposers.base import ProposerError, ShouldStop

PREFIX = "check-"
"""Of the tickets, by which a conclusion knows that no attempt waits for the report."""
POLL_S = 0.2


def quick_check(attempt: Attempt, candidate: CandidateSource, should_stop: ShouldStop) -> Report:
    """The report on visible workloads. Raises ``ProposerError`` when stopped, or when no evaluator answers in time."""
    campaign = attempt.campaign
    request = EvaluationRequest(
        problem_name=campaign.problem,
        problem_files=campaign.problem_files,
        candidate=candidate,
        incumbent=campaign.incumbent_candidate(),
        baseline=campaign.baseline,
        mode="visible",
        time_limit_s=settings.EVALUATION_LIMIT_S,
    )
    ticket = f"{PREFIX}{uuid.uuid4()}"[:36]
    try:
        app.send_task("evaluate", [ticket, msgspec.to_builtins(request)], queue=campaign.queue, task_id=ticket)
        report = wait(ticket, campaign.queue, should_stop)
    except (redis.RedisError, OperationalError) as error:
        raise ProposerError(f"the broker does not answer: {error}", retryable=True) from None
    Attempt.objects.filter(pk=attempt.pk).update(check_seconds=F("check_seconds") + report.seconds)
    return report


def wait(ticket: str, queue: str, should_stop: ShouldStop) -> Report:
    quiet_since = time.monotonic()
    try:
        while not should_stop():
            if raw := dispatch.report_of(ticket):
                return reports.decode(raw)
            if dispatch.alive(ticket) or dispatch.is_waiting(ticket, queue):
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > settings.LOST_AFTER_S:
                raise ProposerError("the evaluator was lost while it measured; check again", retryable=True)
            time.sleep(POLL_S)
        raise ProposerError("Stopped: nobody waits for this proposal any more.", retryable=True)
    finally:
        dispatch.cancel(ticket)
        dispatch.forget(ticket)
