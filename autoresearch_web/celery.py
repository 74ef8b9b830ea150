"""The Celery application: queues ``loop`` (proposals, verdicts), ``gpu.<kind>`` (evaluations), ``profiles`` (imports)."""

from __future__ import annotations

import os
import warnings

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")

from django.conf import settings


def broker_url(redis_url: str) -> str:
    """Celery's spelling of a Redis address: ``unix:///path`` is ``redis+socket:///path`` there."""
    return redis_url.replace("unix://", "redis+socket://", 1) if redis_url.startswith("unix://") else redis_url


# Candidates never run as the worker's user: as root the evaluator can give each sandbox a user of its own (docs/harness.md).
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")

app = Celery("autoresearch_web")
app.conf.update(
    broker_url=broker_url(settings.REDIS_URL),
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        # Above the longest task: a message that is not acknowledged by then is given to another worker.
        "visibility_timeout": settings.EVALUATION_LIMIT_S + 3600,
        "socket_keepalive": True,
    },
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    task_default_queue="loop",
    beat_scheduler="autoresearch_web.ticking:Ticks",
    beat_schedule={
        "watch": {"task": "campaigns.tasks.watch", "schedule": 5.0, "options": {"queue": "loop", "expires": 5}},
        "watch_profiles": {
            "task": "profiling.tasks.watch",
            "schedule": 15.0,
            "options": {"queue": "loop", "expires": 15},
        },
    },
)
app.autodiscover_tasks()
