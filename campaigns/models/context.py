from __future__ import annotations

from django.conf import settings
from django.db import models

from campaigns.context.cards import Card


class CardVersion(models.Model):
    """A context card in one exact wording. Rows are only added: an attempt that saw one can always be shown it."""

    name = models.CharField(max_length=100, help_text="kind/slug, such as hardware/h200")
    sha256 = models.CharField(max_length=64)
    text = models.TextField()
    origin = models.CharField(max_length=10, help_text="bundled, team, edited or device: where it first came from")
    note = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = [models.UniqueConstraint(fields=["name", "sha256"], name="card_version_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:8]}"

    def card(self) -> Card:
        return Card(name=self.name, text=self.text, origin=self.origin)


class CardHead(models.Model):
    """The version of a card that holds now, where somebody chose one in the browser. None: what lies on disk."""

    name = models.CharField(max_length=100, unique=True)
    version = models.ForeignKey(CardVersion, null=True, on_delete=models.SET_NULL, related_name="+")
    seq = models.PositiveIntegerField(default=0, help_text="Counts the changes, so that of two editors one is told")

    def __str__(self) -> str:
        return self.name
