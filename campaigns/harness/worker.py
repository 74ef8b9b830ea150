"""The evaluator's Celery worker: it knows the broker and nothing else. No Django, no database, no secret.

    celery -A campaigns.harness.worker worker -Q gpu.cpu -c 1

A request comes in as JSON under a ticket. While it works, ``evaluation:<ticket>:alive`` at the broker says at what; the
report goes to ``evaluation:<ticket>:report``; ``evaluation:<ticket>:cancelled`` stops it.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import redis
from celery import Celery

from . import capturing
from . import report as reports
from .errors import Stopped
from .evaluator import evaluate
from .hosts import host_name
from .request import EvaluationRequest
from .sandbox import die_with_parent

log = logging.getLogger(__name__)

REDIS_URL = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
ALIVE_S = 10
BEAT_S = 1.0
KEEP_S = 24 * 3600

app = Celery("campaigns.harness.worker")
app.conf.update(
    broker_url=REDIS_URL.replace("unix://", "redis+socket://", 1),
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": int(os.environ.get("EVALUATION_LIMIT_S", "600")) + 3600},
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    task_default_queue="gpu.cpu",
    include=["campaigns.harness.presence", "campaigns.scenarios.worker"],
)


@functools.cache
def broker() -> redis.Redis:
    return redis.Redis.from_url(REDIS_URL)


class Sign:
    """The sign of life of one evaluation, or of another ``work`` by ticket, and its ear for a cancellation."""

    def __init__(self, ticket: str, work: str = "evaluation") -> None:
        self.key = f"{work}:{ticket}"
        self.state = {"stage": "starting", "detail": "", "host": host_name(), "since": time.time()}
        self.cancelled = threading.Event()
        self.done = threading.Event()

    def progress(self, stage: str, detail: str) -> None:
        self.state = {**self.state, "stage": stage, "detail": detail}

    def show(self) -> None:
        broker().set(f"{self.key}:alive", json.dumps(self.state), ex=ALIVE_S)
        if broker().exists(f"{self.key}:cancelled"):
            self.cancelled.set()

    def keep_showing(self) -> None:
        while not self.done.wait(BEAT_S):
            try:
                self.show()
            except redis.RedisError as error:
                log.warning("the broker does not answer: %s", error)

    @contextmanager
    def shown(self) -> Iterator[None]:
        self.show()
        thread = threading.Thread(target=self.keep_showing, name="sign of life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.done.set()
            thread.join()
            broker().delete(f"{self.key}:alive")


@app.task(name="evaluate")
def evaluate_ticket(ticket: str, request: dict[str, Any]) -> None:
    """Evaluate once and leave the report. Called again for the same ticket, only say again that it is there."""
    die_with_parent()
    sign = Sign(ticket)
    if broker().exists(f"evaluation:{ticket}:cancelled"):
        return
    if not broker().exists(f"evaluation:{ticket}:report"):
        with sign.shown():
            app.send_task("campaigns.tasks.evaluation_started", [ticket, host_name()], queue="loop")
            try:
                parsed = msgspec.convert(request, EvaluationRequest)
                found = evaluate(parsed, progress=sign.progress, should_stop=sign.cancelled.is_set)
            except Stopped:
                log.info("evaluation %s was stopped", ticket)
                return
            broker().set(f"evaluation:{ticket}:report", reports.encode(found), ex=KEEP_S)
    app.send_task("campaigns.tasks.conclude", [ticket], queue="loop")


@app.task(name="capture")
def capture_ticket(ticket: str, request: dict[str, Any], roles: list[str]) -> None:
    """Profile what was kept, leave the traces, and say so to the queue that imports them. Once for each ticket."""
    die_with_parent()
    if not broker().exists(f"capture:{ticket}:traces"):
        with Sign(ticket, "capture").shown():
            parsed = msgspec.convert(request, EvaluationRequest)
            traces = capturing.capture(parsed, roles)
            broker().set(f"capture:{ticket}:traces", msgspec.msgpack.encode(traces), ex=KEEP_S)
    app.send_task("campaigns.tasks.attach_profiles", [ticket], queue="profiles")
