from __future__ import annotations

from typing import Any

from django.db import models, transaction
from django.db.models import F

from .attempt import Attempt, Verdict
from .campaign import Campaign
from .review import Decision

DECIDED = frozenset(f"attempt.{decision}" for decision in Decision)


class Event(models.Model):
    """Something that happened in a campaign. ``seq`` counts from 1 per campaign without a gap: a page that was asleep
    asks for what came after the last one that it has."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.CASCADE, related_name="events")
    data = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("campaign", "seq")
        constraints = [models.UniqueConstraint(fields=["campaign", "seq"], name="event_seq_once_per_campaign")]

    def __str__(self) -> str:
        return f"{self.campaign_id}:{self.seq} {self.kind}"

    @property
    def moves_the_queue(self) -> bool:
        """Whether more or fewer kernels may wait for review after it."""
        return self.kind in DECIDED or (self.kind == "attempt.judged" and self.data.get("verdict") == Verdict.KEPT)

    @classmethod
    def record(cls, campaign_id: int, kind: str, attempt: Attempt | None = None, **data: Any) -> Event:
        """Write an event; once the transaction commits, every open page is told that there is more."""
        from campaigns import notify

        with transaction.atomic():
            Campaign.objects.filter(pk=campaign_id).update(event_seq=F("event_seq") + 1)
            seq = Campaign.objects.values_list("event_seq", flat=True).get(pk=campaign_id)
            event = cls.objects.create(campaign_id=campaign_id, seq=seq, kind=kind, attempt=attempt, data=data)
            transaction.on_commit(lambda: notify.there_is_more(campaign_id, seq, event.moves_the_queue))
        return event
