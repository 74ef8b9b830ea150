from __future__ import annotations

from django.conf import settings
from django.db import models

from campaigns.harness import report as reports

from .attempt import Attempt, Verdict


class Cause(models.TextChoices):
    PERSON = "person", "a person asked"
    VERSIONS = "versions", "driver, torch or Triton changed"


class RemeasureState(models.TextChoices):
    WAITING = "waiting", "waiting for an evaluator, or being measured"
    DONE = "done", "measured"
    FAILED = "failed", "not measured"
    STOPPED = "stopped"


class Remeasurement(models.Model):
    """A judged attempt measured once more, beside the same incumbent and baseline. The attempt itself is not touched:
    its verdict, and what was signed, stay as they are. Rows are only added."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="remeasurements")
    cause = models.CharField(max_length=10, choices=Cause)
    versions = models.CharField(max_length=300, blank=True, help_text="For which versions it was asked")
    state = models.CharField(max_length=10, choices=RemeasureState, default=RemeasureState.WAITING, db_index=True)
    ticket = models.CharField(max_length=36, unique=True)
    tries = models.PositiveSmallIntegerField(default=1)
    sent_at = models.DateTimeField(auto_now_add=True)
    report = models.TextField(blank=True, help_text="campaigns.harness.report.Report as JSON")
    verdict = models.CharField(max_length=20, choices=Verdict, blank=True)
    holds = models.BooleanField(null=True, help_text="Whether what was said of it still holds; null: not known")
    reason = models.TextField(blank=True)
    speedup = models.FloatField(null=True, blank=True)
    speedup_lo = models.FloatField(null=True, blank=True)
    speedup_hi = models.FloatField(null=True, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "versions"],
                condition=models.Q(cause=Cause.VERSIONS),
                name="once_per_attempt_and_versions",
            ),
            models.UniqueConstraint(
                fields=["attempt"], condition=models.Q(state=RemeasureState.WAITING), name="one_remeasurement_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.attempt} again: {self.state}"

    @property
    def half_band(self) -> float | None:
        if self.speedup_lo is None or self.speedup_hi is None:
            return None
        return (self.speedup_hi - self.speedup_lo) / 2

    def parsed_report(self) -> reports.Report | None:
        return reports.decode(self.report) if self.report else None
