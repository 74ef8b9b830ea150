from __future__ import annotations

from django.conf import settings
from django.db import models

from .campaign import Campaign


class Idea(models.Model):
    """A person's sentence: what to do instead. Attempts belong to an idea, so that each idea has a tally of its own."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="ideas")
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    struck_at = models.DateTimeField(null=True, blank=True, help_text="Since when no more attempts go to it")
    spent = models.TextField(blank=True, help_text="Why the agent holds that it cannot work; no more attempts go to it")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.text[:80]

    def tries(self) -> int:
        return self.attempts.exclude(verdict="").count()

    def kept(self) -> int:
        return self.attempts.filter(verdict="kept").count()

    def best_speedup(self) -> float | None:
        """Over the baseline, among what was kept."""
        return self.attempts.filter(verdict="kept").aggregate(best=models.Max("speedup"))["best"]


class Steering(models.Model):
    """A person's word to the agent in the course of a campaign. Every later proposal reads it."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="steerings")
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.text[:80]
