from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from profiling.silence import is_silent, silent
from profiling.store import STORE_VERSION, Store
from profiling.trace import Trace


class State(models.TextChoices):
    UPLOADED = "uploaded", "waiting for import"
    IMPORTING = "importing", "importing"
    READY = "ready", "ready"
    FAILED = "failed", "not imported"
    NEEDS_EXPORT = "needs_export", "needs export"


class Profile(models.Model):
    """A capture that was uploaded. What it shows lies in its store; of the capture only an allow-list is kept."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.BigIntegerField()
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    state = models.CharField(max_length=16, choices=State, default=State.UPLOADED)
    progress = models.PositiveSmallIntegerField(default=0, help_text="0 to 100")
    phase = models.CharField(max_length=100, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True, help_text="When the import last said that it is alive")
    run = models.UUIDField(null=True, blank=True, help_text="The import that may write to this row")
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Imports begun since a person last asked for one")
    error = models.TextField(blank=True)
    hint = models.TextField(blank=True)

    format = models.CharField(max_length=40, blank=True)
    producer = models.CharField(max_length=80, blank=True)
    schema = models.CharField(max_length=40, blank=True)
    gpus = models.JSONField(default=list, help_text="Names that the capture itself gives")
    label = models.CharField(max_length=40, blank=True)
    label_title = models.CharField(max_length=200, blank=True)
    label_reason = models.TextField(blank=True)
    span_ns = models.BigIntegerField(null=True, blank=True)
    kernel_count = models.BigIntegerField(null=True, blank=True)
    summary = models.JSONField(default=dict, help_text="profiling.report.build")
    findings = models.JSONField(default=list)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("profile", args=[self.pk])

    @property
    def folder(self) -> Path:
        """Everything of this profile on disk. No part of an upload's own name is ever a path."""
        return Path(settings.MEDIA_ROOT) / "profiles" / str(self.pk)

    @property
    def upload_path(self) -> Path:
        return self.folder / "upload"

    @property
    def store_path(self) -> Path:
        return self.folder / f"store-{STORE_VERSION}"

    def open_trace(self) -> Trace:
        return Trace(Store(self.store_path))

    def title(self) -> str:
        """What is wrong, in words; while there is nothing to say, the file's name."""
        return self.label_title if self.state == State.READY and self.label_title else self.name

    def is_ready(self) -> bool:
        return self.state == State.READY

    def is_busy(self) -> bool:
        return self.state in (State.UPLOADED, State.IMPORTING)

    def has_upload(self) -> bool:
        return self.upload_path.is_file()

    def is_stale(self) -> bool:
        """Whether an import that was begun, or was to begin, has fallen silent."""
        seen = self.heartbeat_at or self.created_at
        return self.is_busy() and is_silent(seen, settings.LOST_AFTER_S)

    def claim(self, run: uuid.UUID) -> bool:
        """Take the import for ``run``: one process at a time, but anyone's once it has been silent for too long."""
        now = timezone.now()
        unheard = models.Q(heartbeat_at=None) | silent("heartbeat_at", settings.LOST_AFTER_S)
        open_to_all = models.Q(state=State.UPLOADED) | (models.Q(state=State.IMPORTING) & unheard)
        changed = Profile.objects.filter(open_to_all, pk=self.pk).update(
            state=State.IMPORTING,
            run=run,
            heartbeat_at=now,
            progress=0,
            phase="starting",
            attempts=models.F("attempts") + 1,
        )
        self.refresh_from_db()
        return changed == 1

    def note_progress(self, run: uuid.UUID, percent: int, phase: str) -> bool:
        """Write progress and say "alive". False: the import now belongs to another run, or was deleted; stop."""
        mine = Profile.objects.filter(pk=self.pk, run=run, state=State.IMPORTING)
        return mine.update(progress=percent, phase=phase[:100], heartbeat_at=timezone.now()) == 1

    def finish(self, run: uuid.UUID, report: dict[str, Any]) -> bool:
        mine = Profile.objects.filter(pk=self.pk, run=run, state=State.IMPORTING)
        return mine.update(state=State.READY, progress=100, phase="", error="", hint="", **report_fields(report)) == 1

    def fail(self, run: uuid.UUID, state: State, error: str, hint: str, format: str = "") -> bool:
        """Say why. The upload stays for another try."""
        mine = Profile.objects.filter(pk=self.pk, run=run, state=State.IMPORTING)
        return mine.update(state=state, phase="", error=error, hint=hint, format=format) == 1

    def ask_again(self) -> bool:
        """Back to waiting, for a person who wants another try."""
        retriable = Profile.objects.filter(pk=self.pk).exclude(state=State.READY)
        heard = models.Q(heartbeat_at__isnull=False) & ~silent("heartbeat_at", settings.LOST_AFTER_S)
        busy = models.Q(state=State.IMPORTING) & heard
        return (
            retriable.exclude(busy).update(
                state=State.UPLOADED, attempts=0, progress=0, phase="", error="", hint="", heartbeat_at=None, run=None
            )
            == 1
        )

    def discard(self) -> None:
        """Delete the row, its regions, the upload and the store."""
        folder = self.folder
        self.delete()
        shutil.rmtree(folder, ignore_errors=True)


def report_fields(report: dict[str, Any]) -> dict[str, Any]:
    """A report's values for the columns that lists and pages ask for."""
    copied = ("format", "producer", "schema", "gpus", "label", "label_title", "label_reason", "span_ns", "findings")
    summary = {key: value for key, value in report.items() if key != "findings"}
    return {key: report[key] for key in copied} | {"kernel_count": report["kernels"], "summary": summary}
