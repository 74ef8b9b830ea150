from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
from django.db import models
from django.utils import timezone

from campaigns.harness.report import Host
from profiling.silence import is_silent

WATCHED = ("driver", "torch", "triton")
"""Versions that can change how fast a kernel is, or whether it is right, without a line of it being changed."""
SILENT_AFTER = timedelta(seconds=60)


def fingerprint(versions: dict[str, str]) -> str:
    """The watched versions as one word: ``driver 580.1, torch 2.11.0``. Empty where none is known."""
    return ", ".join(f"{name} {versions[name]}" for name in WATCHED if versions.get(name))


class EvaluatorHost(models.Model):
    """A machine that said that it takes evaluations from a queue, as it last described itself."""

    queue = models.CharField(max_length=60)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=200, help_text="cpu, or the GPU's name as the driver gives it")
    about = models.JSONField(default=dict, help_text="campaigns.harness.report.Host")
    gpu = models.JSONField(default=dict, help_text="{memory_bytes, capability, count}; empty on a CPU")
    checked = models.CharField(
        max_length=300, blank=True, help_text="The versions for which every approved kernel was asked to be measured"
    )
    versions_before = models.CharField(max_length=300, blank=True)
    versions_changed_at = models.DateTimeField(null=True, blank=True)
    first_seen = models.DateTimeField(auto_now_add=True)
    last_seen = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("queue", "name")
        constraints = [models.UniqueConstraint(fields=["queue", "name"], name="one_row_per_host_and_queue")]

    def __str__(self) -> str:
        return f"{self.name} {self.queue}"

    def described(self) -> Host:
        """Raises ``msgspec.ValidationError`` when the row is of a version that this one does not know."""
        return msgspec.convert(self.about, Host)

    @property
    def versions(self) -> dict[str, str]:
        found: dict[str, Any] = self.about.get("versions") or {}
        return found

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.versions)

    def is_silent(self) -> bool:
        return is_silent(self.last_seen, SILENT_AFTER.total_seconds())
