from __future__ import annotations

from django.db import models

from .attempt import Attempt


class Measurement(models.Model):
    """One workload of one attempt. Times in µs a call; null means not measured."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="measurements")
    workload = models.CharField(max_length=100)
    hidden = models.BooleanField(default=False)
    axes = models.JSONField(default=dict)
    correct = models.BooleanField(null=True)
    error = models.FloatField(null=True)
    tolerance = models.FloatField(null=True)
    detail = models.TextField(blank=True)
    time_us = models.FloatField(null=True)
    baseline_us = models.FloatField(null=True)
    incumbent_us = models.FloatField(null=True)
    floor_us = models.FloatField(null=True)
    speedup = models.FloatField(null=True)
    speedup_lo = models.FloatField(null=True)
    speedup_hi = models.FloatField(null=True)
    over_incumbent = models.FloatField(null=True)
    over_incumbent_lo = models.FloatField(null=True)
    over_incumbent_hi = models.FloatField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=["attempt", "workload"], name="one_measurement_per_workload")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.workload}"
