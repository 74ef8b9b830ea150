from __future__ import annotations

from django.conf import settings
from django.db import models

from campaigns.scenarios import request as requests

from .attempt import Attempt
from .kernel import Kernel


class StackState(models.TextChoices):
    WAITING = "waiting", "waiting for an evaluator, or being measured"
    DONE = "done"
    FAILED = "failed", "not measured"
    STOPPED = "stopped"


class StackMeasurement(models.Model):
    """One measurement of a scenario's step with the kernels that were in force. Rows are only added."""

    scenario = models.CharField(max_length=100, db_index=True)
    hardware = models.CharField(max_length=50)
    state = models.CharField(max_length=10, choices=StackState, default=StackState.WAITING, db_index=True)
    ticket = models.CharField(max_length=36, unique=True)
    kernels = models.ManyToManyField(Kernel, related_name="stacks")
    tried = models.ManyToManyField(
        Attempt, blank=True, related_name="trials", help_text="Not approved: tried together, on top of the kernels"
    )
    not_here = models.JSONField(
        default=list, help_text="[{kernel, operator, label, why}]: approved, and does not serve here"
    )
    report = models.TextField(blank=True, help_text="campaigns.scenarios.request.StackReport as JSON")
    error = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.scenario} {self.state}"

    @classmethod
    def that_held(cls, attempt: Attempt) -> StackMeasurement | None:
        """The latest combination of this attempt with others that was measured to hold."""
        done = cls.objects.filter(state=StackState.DONE, tried=attempt).order_by("-id")
        return next((trial for trial in done if trial.held(attempt)), None)

    def held(self, attempt: Attempt) -> bool:
        """Whether this attempt is in a combination that was measured to hold."""
        report = self.parsed_report()
        return bool(report and report.trial and report.trial.holds and attempt.trial_id in report.trial.kernels)

    def parsed_report(self) -> requests.StackReport | None:
        return requests.decode(self.report) if self.report else None
