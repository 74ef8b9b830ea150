"""Celery tasks of the queue ``profiles``: load by id, call one function. Each may run twice, or be killed."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.conf import settings

from profiling import importing


@shared_task(name="profiling.tasks.import_profile", bind=True, max_retries=None)
def import_profile(self: Any, profile_id: str) -> None:
    if not importing.run(profile_id):
        raise self.retry(countdown=settings.LOST_AFTER_S + 1)


@shared_task(name="profiling.tasks.watch")
def watch() -> None:
    importing.watch()
