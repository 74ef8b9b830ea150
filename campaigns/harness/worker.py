"""The evaluator's Celery worker: it knows the broker and nothing else. No Django, no database, no secret.

    celery -A campaigns.harness.worker worker -Q gpu.cpu -c 1

A request comes in as JSON under a ticket. While it works, ``evaluation:<ticket>:alive`` at the broker says at what; the
report goes to ``evaluation:<ticket>:report``; ``evaluation:<ticket>:cancelled`` stops it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
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
from .evaluator import evaluate, since_last
from .hosts import host_name
from .request import EvaluationRequest
from .sandbox import die_with_parent

log = logging.getLogger(__name__)

REDIS_URL = os.environ.get("REDIS_URL", "redis://localhost:6379/0")
ALIVE_S = 10
BEAT_S = 1.0
KEEP_S = 24 * 3600
QUIET_S, PUT_OFF_S = 3.0, 120.0
"""A profile begins once its evaluator has had nothing to do for so long, or, where there is always something, when it has
waited for so long: a campaign's reviewers want to see something before it ends."""
OTHERS_QUIET_S, OTHERS_PUT_OFF_S = 120.0, 600.0
"""The same where that evaluator's last evaluation was of another problem, whose warm processes the profile would end."""
LOOK_S = 0.2

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


@app.task(name="capture", bind=True)
def capture_ticket(
    task: Any, ticket: str, request: dict[str, Any], roles: list[str], put_off_since: float | None = None
) -> None:
    """Profile what was kept, one role and tool after the other, and say of each to the queue that imports it.

    Whatever else comes into this queue goes first, also while a profile is being taken: what is left is asked for again,
    behind it. Where something always comes, one profile is taken at a time (``PUT_OFF_S``).
    """
    die_with_parent()
    queue = task.request.delivery_info["routing_key"]
    since = min(put_off_since or time.time(), time.time())  # the clock may have been set back
    parsed = msgspec.convert(request, EvaluationRequest)
    taken = {(role, tool) for role, tool in map(json.loads, broker().smembers(f"capture:{ticket}:taken"))}
    others = Others(queue, parsed, since)

    def put_off() -> None:
        app.send_task("capture", [ticket, request, roles, since], queue=queue)

    with Sign(ticket, "capture").shown():
        if not others.quiet():
            return put_off()
        try:
            with contextlib.closing(capturing.capture(parsed, roles, others.waiting, taken)) as traces:
                for trace in traces:
                    with broker().pipeline() as pipeline:
                        pipeline.rpush(f"capture:{ticket}:traces", msgspec.msgpack.encode(trace))
                        pipeline.sadd(f"capture:{ticket}:taken", json.dumps([trace.role, trace.tool]))
                        for key in ("traces", "taken"):
                            pipeline.expire(f"capture:{ticket}:{key}", KEEP_S)
                        pipeline.execute()
                    app.send_task("campaigns.tasks.attach_profiles", [ticket], queue="profiles")
                    others.since = since = time.time()
                    if others.waiting():
                        return put_off()
        except Stopped:
            put_off()


class Others:
    """What else there is to do in a queue, for a profile that lets it go first: it waits ``since`` then (seconds of the epoch)."""

    def __init__(self, queue: str, request: EvaluationRequest, since: float) -> None:
        self.queue, self.since = queue, since
        self.idle_s, same = since_last(request.problem_files)
        warm = same or self.idle_s == math.inf
        self.quiet_s, self.put_off_s = (QUIET_S, PUT_OFF_S) if warm else (OTHERS_QUIET_S, OTHERS_PUT_OFF_S)
        self.began = time.monotonic()
        self.looked, self.found = 0.0, False

    def waiting(self) -> bool:
        """Asked many times a second, it looks a few times."""
        if self.has_waited():
            return False
        if time.monotonic() - self.looked > LOOK_S:
            self.looked, self.found = time.monotonic(), others_wait(self.queue)
        return self.found

    def has_waited(self) -> bool:
        """Whether its time is over; also where the clock was set back, and says nothing of how long it has been."""
        return not 0 <= time.time() - self.since <= self.put_off_s

    def quiet(self) -> bool:
        """Wait until the evaluator has been idle for a while, or this has waited too long; False once something else comes."""
        while not self.has_waited():
            if self.waiting():
                return False
            if self.idle_s + time.monotonic() - self.began > self.quiet_s:
                break
            time.sleep(LOOK_S)
        return True


def others_wait(queue: str) -> bool:
    """Whether something else than a capture lies in the queue."""
    return any(b'"task": "capture"' not in message for message in broker().lrange(queue, 0, -1))
