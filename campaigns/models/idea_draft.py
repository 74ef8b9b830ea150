from __future__ import annotations

from django.conf import settings
from django.db import models


class DraftState(models.TextChoices):
    ASKED = "asked", "the model is asked"
    OPEN = "open"
    TAKEN = "taken"
    STRUCK = "struck"
    FAILED = "failed", "no idea came"


class IdeaDraft(models.Model):
    """An idea that a model wrote from a profile's findings, when told to. Nothing starts from it by itself.

    A row begins as ``asked``, with no text, and ends as the first idea, or as ``failed`` with the reason as its text.
    """

    profile = models.ForeignKey("profiling.Profile", on_delete=models.CASCADE, related_name="idea_drafts")
    text = models.TextField()
    why = models.TextField(blank=True)
    model = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=DraftState, default=DraftState.OPEN)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.text[:80]
