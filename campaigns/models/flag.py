from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import QuerySet

from .attempt import Attempt


class FlagState(models.TextChoices):
    OPEN = "open"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


class Flag(models.Model):
    """What a detector saw, with its evidence, and what a person made of it."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="flags")
    rule = models.CharField(max_length=100)
    severity = models.CharField(max_length=10)
    evidence = models.TextField()
    path = models.CharField(max_length=300, blank=True)
    line = models.PositiveIntegerField(null=True)
    data = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=FlagState, default=FlagState.OPEN)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.rule} ({self.severity}, {self.state})"

    def precedents(self) -> QuerySet[Flag]:
        """Flags of the same rule on the same problem that a person dismissed before."""
        same = Flag.objects.filter(rule=self.rule, attempt__campaign__problem=self.attempt.campaign.problem)
        return same.filter(state=FlagState.DISMISSED).exclude(pk=self.pk).order_by("-decided_at")
