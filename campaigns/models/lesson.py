from __future__ import annotations

from django.conf import settings
from django.db import models

from .attempt import Attempt


class LessonKind(models.TextChoices):
    DEAD_END = "dead_end", "did not help"
    BROKEN = "broken", "wrong or broken"
    POINTS = "points", "parameters tried"
    WIN = "win", "helped"
    REJECTED = "rejected", "a person rejected it"
    DISMISSED = "dismissed", "a person dismissed the flag"
    PERSON = "person", "a person's word"


class Lesson(models.Model):
    """Something learnt about a problem on a kind of hardware. It outlives its campaign; each is there once."""

    problem = models.CharField(max_length=100, db_index=True)
    hardware = models.CharField(max_length=50)
    backend = models.CharField(max_length=20, blank=True, help_text="Empty: holds for every backend")
    key = models.CharField(max_length=64)
    kind = models.CharField(max_length=10, choices=LessonKind)
    text = models.TextField()
    count = models.PositiveIntegerField(default=1, help_text="How often it was met")
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.SET_NULL, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    pinned_at = models.DateTimeField(null=True, blank=True, help_text="Always told first")
    struck_at = models.DateTimeField(null=True, blank=True, help_text="Not told any more")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-updated_at", "-id")
        constraints = [models.UniqueConstraint(fields=["problem", "hardware", "key"], name="lesson_once")]

    def __str__(self) -> str:
        return self.text[:80]
