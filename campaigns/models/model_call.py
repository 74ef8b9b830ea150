from __future__ import annotations

from django.conf import settings
from django.db import models

from .attempt import Attempt
from .campaign import Campaign


class Outcome(models.TextChoices):
    ANSWERED = "answered"
    REFUSED = "refused"
    CUT = "cut", "cut off"
    STOPPED = "stopped"
    FAILED = "failed"


class ModelCall(models.Model):
    """One request to a model, as its server counted it: the ledger. Every sum of tokens and money is a sum of rows.

    A row is written the moment that the request ends, so that a worker which dies later loses nothing. ``price_usd``
    and the counts of tokens are null where they are not known, never 0.
    """

    campaign = models.ForeignKey(Campaign, null=True, on_delete=models.SET_NULL, related_name="model_calls")
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.SET_NULL, related_name="model_calls")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    agent = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    backend = models.CharField(max_length=20, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome)
    input_tokens = models.PositiveBigIntegerField(null=True, help_text="All of them, cached ones included")
    cached_input_tokens = models.PositiveBigIntegerField(null=True, help_text="Read from the cache")
    cache_write_tokens = models.PositiveBigIntegerField(null=True, help_text="Written to the cache")
    output_tokens = models.PositiveBigIntegerField(null=True)
    price_usd = models.DecimalField(null=True, max_digits=16, decimal_places=9)
    seconds = models.FloatField(default=0)
    request_id = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.model} {self.input_tokens}+{self.output_tokens}"
