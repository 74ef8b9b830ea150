"""Celery tasks: load by id, call one function. Every one may run twice, or be killed at any moment, without harm."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from campaigns import captures, conclusion, drafting, hosts, progress, proposing, recordings, remeasuring, watching
from campaigns.intake import jobs
from campaigns.scenarios import stacking


@shared_task(name="campaigns.tasks.advance")
def advance(campaign_id: int) -> None:
    progress.advance(campaign_id)


@shared_task(name="campaigns.tasks.propose")
def propose(attempt_id: int) -> None:
    proposing.propose(attempt_id)


@shared_task(name="campaigns.tasks.draft_ideas")
def draft_ideas(asked_id: int, agent: str, options: dict[str, Any]) -> None:
    drafting.draft(asked_id, agent, options)


@shared_task(name="campaigns.tasks.evaluation_started")
def evaluation_started(ticket: str, host: str) -> None:
    conclusion.note_start(ticket, host)


@shared_task(name="campaigns.tasks.conclude")
def conclude(ticket: str) -> None:
    conclusion.conclude(ticket)


@shared_task(name="campaigns.tasks.attach_profiles")
def attach_profiles(ticket: str) -> None:
    captures.attach(ticket)


@shared_task(name="campaigns.tasks.conclude_stack")
def conclude_stack(ticket: str) -> None:
    stacking.conclude(ticket)


@shared_task(name="campaigns.tasks.check_import")
def check_import(import_id: str) -> None:
    jobs.run(import_id)


@shared_task(name="campaigns.tasks.take_recorded", bind=True, max_retries=None)
def take_recorded(self: Any, live: int) -> None:
    """Import the recorded campaigns, once the ``live`` one has its first verdict or has had its time."""
    if recordings.in_its_way(live):
        recordings.say(0, len(recordings.not_here()))
        raise self.retry(countdown=2)
    recordings.take_in()


@shared_task(name="campaigns.tasks.watch")
def watch() -> None:
    watching.watch()
    remeasuring.watch()
    captures.watch()
    hosts.watch()
    stacking.watch()
    recordings.watch()
    jobs.watch()
