"""Everything that goes through the broker: messages to workers, and what evaluators leave there for us."""

from __future__ import annotations

import functools
import json
from typing import Any

import msgspec
import redis
from django.conf import settings

from autoresearch_web.celery import app
from campaigns.harness.request import EvaluationRequest
from campaigns.models import Attempt, FlagState

KEEP_S = 24 * 3600
MAX_TRIES = 3
"""Evaluations that may be lost with their worker before an attempt is given up as not measured."""


@functools.cache
def broker() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL)


def answers() -> bool:
    """Whether there is a broker. Sending a message where there is none takes some seconds to fail."""
    try:
        return bool(broker().ping())
    except redis.RedisError:
        return False


def advance(campaign_id: int) -> None:
    app.send_task("campaigns.tasks.advance", [campaign_id], queue="loop")


def propose(attempt_id: int) -> None:
    app.send_task("campaigns.tasks.propose", [attempt_id], queue="propose")


def take_recorded(live: int) -> None:
    app.send_task("campaigns.tasks.take_recorded", [live], queue="profiles")


def draft(asked_id: int, agent: str, options: dict[str, Any]) -> None:
    app.send_task("campaigns.tasks.draft_ideas", [asked_id, agent, options], queue="propose")


def evaluate(attempt: Attempt) -> None:
    """Send the evaluation out under the attempt's ticket. The message holds all that the GPU host needs."""
    send(request_of(attempt), attempt.ticket, attempt.campaign.queue)


def evaluate_again(attempt: Attempt, ticket: str) -> None:
    """The same question under another ticket. What a person dismissed when it was judged does not stop it again."""
    send(request_of(attempt), ticket, attempt.campaign.queue)


def capture(attempt: Attempt, roles: list[str]) -> None:
    """Have what an attempt ran profiled on a host of the same kind, behind the evaluations that wait already."""
    body = msgspec.to_builtins(request_of(attempt))
    broker().delete(f"capture:{attempt.ticket}:taken")  # what is asked for again was lost, whoever took it
    app.send_task("capture", [attempt.ticket, body, roles], queue=attempt.campaign.queue, retry=False)


def attach_profiles(ticket: str) -> None:
    """Say once more that traces lie at the broker."""
    app.send_task("campaigns.tasks.attach_profiles", [ticket], queue="profiles", retry=False)


def capture_under_way(ticket: str, queue: str) -> bool:
    """Whether an evaluator takes the profiles just now, or the message that asks for them still waits for one."""
    return bool(broker().exists(f"capture:{ticket}:alive")) or is_waiting(ticket, queue)


def traces_of(ticket: str) -> list[bytes]:
    """What an evaluator left so far, the oldest first."""
    found = broker().lrange(f"capture:{ticket}:traces", 0, -1)
    return [trace.encode() if isinstance(trace, str) else trace for trace in found]


def forget_trace(ticket: str, trace: bytes) -> None:
    """This one and no other: more may have come since it was read, and somebody else may have read it too."""
    broker().lrem(f"capture:{ticket}:traces", 1, trace)  # type: ignore[arg-type]


def request_of(attempt: Attempt) -> EvaluationRequest:
    campaign = attempt.campaign
    return EvaluationRequest(
        problem_name=campaign.problem,
        problem_files=campaign.problem_files,
        candidate=attempt.candidate(),
        incumbent=attempt.parent.candidate() if attempt.parent else campaign.start_candidate(),
        baseline=campaign.baseline,
        time_limit_s=settings.EVALUATION_LIMIT_S,
        dismissed=sorted(set(attempt.flags.filter(state=FlagState.DISMISSED).values_list("rule", flat=True))),
    )


def send(request: EvaluationRequest, ticket: str, queue: str) -> None:
    app.send_task("evaluate", [ticket, msgspec.to_builtins(request)], queue=queue, task_id=ticket)


def cancel(ticket: str) -> None:
    """Tell the evaluator, wherever it is, that nobody waits for this ticket any more."""
    broker().set(f"evaluation:{ticket}:cancelled", "1", ex=KEEP_S)


def report_of(ticket: str) -> bytes | None:
    report = broker().get(f"evaluation:{ticket}:report")
    return report.encode() if isinstance(report, str) else report


def forget(ticket: str) -> None:
    broker().delete(f"evaluation:{ticket}:report", f"evaluation:{ticket}:alive")


def alive(ticket: str) -> dict[str, Any] | None:
    """What the evaluator last said of itself (stage, detail, host), or None when it has fallen silent."""
    text = broker().get(f"evaluation:{ticket}:alive")
    return json.loads(text) if text else None


def queue_length(queue: str) -> int:
    """Messages that no worker has taken yet."""
    return int(broker().llen(queue))


def is_waiting(ticket: str, queue: str) -> bool:
    """Whether the evaluation still lies in the queue and no worker has taken it."""
    needle = ticket.encode()
    return any(needle in message for message in broker().lrange(queue, 0, -1))
