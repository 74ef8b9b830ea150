"""An import as a job: made into a folder, checked, and put on the shelf. It may run twice, or be killed at any moment."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Q
from django.utils import timezone

from campaigns.harness import evaluator
from campaigns.harness.errors import Infrastructure, Stopped
from campaigns.harness.problem_check import check_problem
from campaigns.models import ProblemImport
from campaigns.models.problem_import import ImportState
from profiling.silence import clock, silent

from .convert import convert, renamed
from .draft import Draft
from .errors import IntakeError
from .shelf import free_name, save

log = logging.getLogger(__name__)
QUEUE = "profiles"
MAX_ATTEMPTS = 3


def enqueue(job: ProblemImport) -> None:
    """Send it to the queue. Where there is no broker the row waits, and ``watch`` sends it later."""
    from campaigns.tasks import check_import

    try:
        check_import.apply_async((str(job.pk),), queue=QUEUE, retry=False)
    except Exception as error:
        log.warning("could not queue the import %s: %s", job.pk, error)


def watch() -> None:
    """Send again what waits or was begun, and has been silent since."""
    if clock.was_set():
        return
    now, after_s = timezone.now(), settings.LOST_AFTER_S
    lost = Q(state=ImportState.RUNNING) & silent("heartbeat_at", after_s)
    unsent = (Q(heartbeat_at=None) & silent("created_at", after_s)) | silent("heartbeat_at", 60)
    waiting = Q(state=ImportState.WAITING) & unsent
    for job in ProblemImport.objects.filter(lost | waiting).only("pk"):
        ProblemImport.objects.filter(pk=job.pk, state=ImportState.WAITING).update(heartbeat_at=now)
        enqueue(job)


class Beat:
    """Says "alive" from a thread of its own, and hears whether somebody gave the job up."""

    def __init__(self, job: ProblemImport, run: uuid.UUID) -> None:
        self.job, self.run = job, run
        self.step = "starting"
        self.stopped, self.over = threading.Event(), threading.Event()

    def say(self, step: str, detail: str) -> None:
        self.step = f"{step}: {detail}"[:200] if detail else step[:200]

    def go_on(self) -> None:
        try:
            while not self.over.wait(settings.HEARTBEAT_S / 2):
                try:
                    mine = self.job.beat(self.run, step=self.step)
                except DatabaseError as error:
                    log.warning("import %s could not say that it is alive: %s", self.job.pk, error)
                    continue
                if not mine:
                    self.stopped.set()
                    return
        finally:
            connection.close()

    @contextmanager
    def going(self) -> Iterator[None]:
        thread = threading.Thread(target=self.go_on, name="sign of life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.over.set()
            thread.join()


def run(pk: str) -> None:
    """Take the job and see it through, unless somebody else is at it, or it is over."""
    job = ProblemImport.objects.filter(pk=pk).first()
    token = uuid.uuid4()
    if job is None or not job.is_busy() or not job.claim(token):
        return
    if job.attempts > MAX_ATTEMPTS:
        job.end(
            token, ImportState.REFUSED, error=f"the check was killed {MAX_ATTEMPTS} times in a row. Try smaller sizes."
        )
        return
    beat = Beat(job, token)
    try:
        with beat.going():
            make_and_check(job, token, beat)
    except IntakeError as error:
        job.end(token, ImportState.REFUSED, error=str(error))
    except Infrastructure as error:
        job.end(token, ImportState.REFUSED, error=f"This machine could not check it: {error}")
    except Stopped:
        log.info("import %s was stopped", job.pk)
    finally:
        evaluator.close()  # the warm processes of a problem that may never be asked again


def make_and_check(job: ProblemImport, token: uuid.UUID, beat: Beat) -> None:
    beat.say("reading what was given", "")
    draft = convert(job.given, job.wish, should_stop=beat.stopped.is_set)
    if job.wish == "":
        draft = renamed(draft, free_name(draft.name))
    told = {
        "format": draft.format,
        "name": draft.name,
        "title": draft.title[:200],
        "draft": draft.files,
        "notes": draft.notes,
    }
    if not job.beat(token, **told):
        raise Stopped
    report = check_problem(draft.files, progress=beat.say, should_stop=beat.stopped.is_set)
    document = msgspec.to_builtins(report)
    if not report.passed:
        job.end(token, ImportState.REFUSED, report=document)
        return
    shelve(job, token, draft)
    job.end(token, ImportState.TAKEN, report=document)


def shelve(job: ProblemImport, token: uuid.UUID, draft: Draft) -> None:
    """Put it on the shelf. Done again after a kill, it finds its own folder there, and that is well."""
    from campaigns import catalog
    from campaigns.harness.problem import ProblemError, read_folder

    if not job.beat(token):
        raise Stopped
    try:
        save(draft)
    except IntakeError:
        try:
            there = read_folder(catalog.find(draft.name))
        except ProblemError:
            raise
        if there != draft.files:
            raise
