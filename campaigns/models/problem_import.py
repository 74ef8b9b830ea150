from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from profiling.silence import is_silent, silent


class ImportState(models.TextChoices):
    WAITING = "waiting", "waiting for a worker"
    RUNNING = "running", "being checked"
    TAKEN = "taken", "taken"
    REFUSED = "refused", "refused"
    STOPPED = "stopped", "stopped"


class ProblemImport(models.Model):
    """What somebody gave to become a problem, and what came of it. ``draft`` is the folder that was made of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    wish = models.CharField(max_length=64, blank=True, help_text="The name that a person wants for it")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    given = models.JSONField(help_text="Text files by path, as they came")

    state = models.CharField(max_length=10, choices=ImportState, default=ImportState.WAITING, db_index=True)
    step = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    run = models.UUIDField(null=True, blank=True, help_text="The process that may write to this row")
    attempts = models.PositiveSmallIntegerField(default=0)

    format = models.CharField(max_length=60, blank=True)
    name = models.CharField(max_length=80, blank=True, help_text="Of the problem that was made")
    title = models.CharField(max_length=200, blank=True)
    draft = models.JSONField(default=dict)
    notes = models.JSONField(default=list)
    report = models.JSONField(default=dict, help_text="campaigns.harness.problem_check.ProblemReport")
    error = models.TextField(blank=True, help_text="Why nothing could be made of it, or it could not be checked")

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.name or self.wish or str(self.pk)

    def get_absolute_url(self) -> str:
        return reverse("problem_import", args=[self.pk])

    def is_busy(self) -> bool:
        return self.state in (ImportState.WAITING, ImportState.RUNNING)

    def is_silent(self) -> bool:
        """Whether nothing was heard of it for so long that somebody else may take it up."""
        seen = self.heartbeat_at or self.created_at
        return self.is_busy() and is_silent(seen, settings.LOST_AFTER_S)

    def claim(self, run: uuid.UUID) -> bool:
        """Take it for ``run``: one process at a time, but anyone's once it fell silent."""
        now = timezone.now()
        unheard = silent("heartbeat_at", settings.LOST_AFTER_S)
        free = models.Q(state=ImportState.WAITING) | (models.Q(state=ImportState.RUNNING) & unheard)
        changed = ProblemImport.objects.filter(free, pk=self.pk).update(
            state=ImportState.RUNNING,
            run=run,
            heartbeat_at=now,
            step="starting",
            attempts=models.F("attempts") + 1,
        )
        self.refresh_from_db()
        return changed == 1

    def mine(self, run: uuid.UUID) -> models.QuerySet[ProblemImport]:
        return ProblemImport.objects.filter(pk=self.pk, run=run, state=ImportState.RUNNING)

    def beat(self, run: uuid.UUID, **changes: Any) -> bool:
        """Say "alive". False: it was stopped, or belongs to another process now."""
        return self.mine(run).update(heartbeat_at=timezone.now(), **changes) == 1

    def end(self, run: uuid.UUID, state: ImportState, **changes: Any) -> bool:
        return self.mine(run).update(state=state, ended_at=timezone.now(), step="", **changes) == 1

    def stop(self) -> bool:
        """A person gave it up. Whoever is at it sees that at the next beat."""
        busy = ProblemImport.objects.filter(pk=self.pk, state__in=(ImportState.WAITING, ImportState.RUNNING))
        return busy.update(state=ImportState.STOPPED, ended_at=timezone.now(), step="") == 1
