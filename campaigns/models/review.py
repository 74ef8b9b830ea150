from __future__ import annotations

from django.conf import settings
from django.db import models

from .attempt import Attempt


class Decision(models.TextChoices):
    SIGNED = "signed", "signed, a second signature is awaited"
    APPROVED = "approved"
    REJECTED = "rejected"


UNDECIDED = ("", Decision.SIGNED)
"""Decisions of an attempt that wait for somebody."""


class RejectKind(models.TextChoices):
    NOT_REAL = "not_real", "the gain is not real"
    CHEAT = "cheat", "it cheats"
    FRAGILE = "fragile", "too fragile or too hard to maintain"
    WRONG_IDEA = "wrong_idea", "not the idea that was asked for"
    OTHER = "other", "another reason"


class Review(models.Model):
    """A person's decision about a kept kernel. Rows are only ever added; a change of mind is a second row.

    ``sha256`` is what was signed (``Attempt.signed_sha256``). When the same hash no longer comes out, it is stale.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="reviews")
    seq = models.PositiveIntegerField()
    decision = models.CharField(max_length=10, choices=Decision)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    kind = models.CharField(max_length=20, choices=RejectKind, blank=True)
    reason = models.TextField(blank=True)
    range = models.JSONField(null=True, blank=True, help_text="{axis, lo, hi}: approved for that range only")
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("seq",)
        constraints = [models.UniqueConstraint(fields=["attempt", "seq"], name="one_review_per_seq")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.decision}"

    def is_stale(self) -> bool:
        return self.sha256 != self.attempt.signed_sha256(self.range)
