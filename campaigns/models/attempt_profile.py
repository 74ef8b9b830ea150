from __future__ import annotations

from django.db import models
from django.utils import timezone

from profiling.models import Profile

from .attempt import Attempt


class AttemptProfile(models.Model):
    """A profile of what an attempt ran: of its candidate, or of the baseline beside it.

    The row is there from when the profile is asked for. ``profile`` comes with the trace; ``problem`` says why there is
    none. Nothing depends on it: a verdict stands without any profile.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="profiles")
    role = models.CharField(max_length=10, help_text="candidate or baseline")
    tool = models.CharField(max_length=10, help_text="torch, nsys or ncu")
    profile = models.ForeignKey(Profile, null=True, blank=True, on_delete=models.SET_NULL, related_name="taken_for")
    workload = models.CharField(max_length=200, blank=True)
    host = models.CharField(max_length=200, blank=True)
    problem = models.TextField(blank=True)
    trace_sha256 = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="The trace that is kept for archives; campaigns/traces.py"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    asked_at = models.DateTimeField(default=timezone.now, help_text="When it was last asked of an evaluator")
    tries = models.PositiveSmallIntegerField(default=1, help_text="Times that it was asked for")

    class Meta:
        ordering = ("attempt", "role", "tool")
        constraints = [
            models.UniqueConstraint(fields=["attempt", "role", "tool"], name="attempt_profile_once_per_role_and_tool")
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.attempt} by {self.tool}"
