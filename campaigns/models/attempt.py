from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import msgspec
from django.db import models
from django.urls import reverse

from campaigns.harness import report as reports
from campaigns.harness.request import CandidateSource

from .campaign import Campaign
from .idea import Idea


class Phase(models.TextChoices):
    PROPOSING = "proposing"
    READY = "ready", "waiting for an evaluator"
    EVALUATING = "evaluating"
    JUDGED = "judged"
    DROPPED = "dropped", "given up before a verdict"


IN_FLIGHT = (Phase.PROPOSING, Phase.READY, Phase.EVALUATING)


class Verdict(models.TextChoices):
    KEPT = "kept"
    STACKED = "stacked"
    REVERTED = "reverted"
    INCORRECT = "incorrect"
    BUILD_FAILED = "build_failed", "build failed"
    LAUNCH_FAILED = "launch_failed", "launch failed"
    TIMED_OUT = "timed_out", "timed out"
    OUT_OF_MEMORY = "out_of_memory", "out of memory"
    FLAGGED = "flagged"
    NO_MEASUREMENT = "no_measurement", "no measurement"
    DUPLICATE = "duplicate", "duplicate, not measured"


MARKS = {
    Verdict.KEPT: "▲",
    Verdict.STACKED: "△",
    Verdict.REVERTED: "·",
    Verdict.FLAGGED: "⚑",
    Verdict.NO_MEASUREMENT: "?",
    Verdict.DUPLICATE: "=",
}


class Attempt(models.Model):
    """One candidate judged once: a row that stays, whatever the outcome.

    Its way is proposing → ready → evaluating → judged, and never back. ``ticket`` names the one evaluation whose
    report counts; a report for another ticket is from a worker that was given up, and is dropped.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    idea = models.ForeignKey(Idea, null=True, on_delete=models.SET_NULL, related_name="attempts")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="children")
    phase = models.CharField(max_length=10, choices=Phase, default=Phase.PROPOSING, db_index=True)

    title = models.CharField(max_length=300, blank=True)
    rationale = models.TextField(blank=True)
    backend = models.CharField(max_length=20, blank=True)
    files = models.JSONField(default=dict, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    source_sha256 = models.CharField(max_length=64, blank=True)
    canonical_sha256 = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="Of the program, whatever its names and layout are"
    )
    structure_sha256 = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="The same, whatever its tunable parameters are"
    )
    cards = models.ManyToManyField("campaigns.CardVersion", blank=True, related_name="attempts")
    reserved_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text="Of the budget, while proposing")
    reserved_usd = models.FloatField(null=True, blank=True)
    check_seconds = models.FloatField(default=0, help_text="Evaluator seconds of quick checks while it was proposed")
    proposer = models.CharField(max_length=100, blank=True)
    usage = models.JSONField(default=dict, blank=True)

    claim = models.CharField(max_length=36, blank=True, help_text="The proposal under way that may write the result")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ticket = models.CharField(max_length=36, blank=True, db_index=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="Evaluations sent out for it")
    sent_at = models.DateTimeField(null=True, blank=True)
    evaluation_started_at = models.DateTimeField(null=True, blank=True)
    host = models.CharField(max_length=200, blank=True)

    verdict = models.CharField(max_length=20, choices=Verdict, blank=True, db_index=True)
    reason = models.TextField(blank=True)
    report = models.TextField(blank=True, help_text="campaigns.harness.report.Report as JSON")
    speedup = models.FloatField(null=True, blank=True, help_text="Over the baseline; null: not measured")
    speedup_lo = models.FloatField(null=True, blank=True)
    speedup_hi = models.FloatField(null=True, blank=True)
    over_incumbent = models.FloatField(null=True, blank=True)
    over_incumbent_lo = models.FloatField(null=True, blank=True)
    over_incumbent_hi = models.FloatField(null=True, blank=True)
    noise_lo = models.FloatField(null=True, blank=True)
    noise_hi = models.FloatField(null=True, blank=True)
    ranges = models.JSONField(default=list, blank=True, help_text="Where it wins, when not everywhere")

    decision = models.CharField(max_length=10, blank=True, help_text="The latest review: approved or rejected")
    decision_seq = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField(auto_now_add=True)
    proposed_at = models.DateTimeField(null=True, blank=True)
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = [models.UniqueConstraint(fields=["campaign", "number"], name="attempt_number_once_per_campaign")]

    def __str__(self) -> str:
        return f"{self.campaign_id}#{self.number} {self.verdict or self.phase}"

    def get_absolute_url(self) -> str:
        return reverse("attempt", args=[self.campaign_id, self.number])

    def candidate(self) -> CandidateSource:
        return CandidateSource(backend=self.backend, files=self.files)

    def parsed_report(self) -> reports.Report | None:
        return reports.decode(self.report) if self.report else None

    @property
    def mark(self) -> str:
        """The sign that stands beside the colour, so that colour never speaks alone."""
        return MARKS.get(Verdict(self.verdict), "✕") if self.verdict else "◌"

    @property
    def tone(self) -> str:
        """The CSS class of the verdict: kept, flag, bad or calm."""
        tones = {Verdict.KEPT: "kept", Verdict.STACKED: "calm", Verdict.REVERTED: "calm", Verdict.FLAGGED: "flag"}
        tones[Verdict.NO_MEASUREMENT] = tones[Verdict.DUPLICATE] = "calm"
        return tones.get(Verdict(self.verdict), "bad") if self.verdict else "calm"

    @property
    def band(self) -> list[float] | None:
        """The 95 % interval of the speed-up, or None where nothing was measured."""
        if self.speedup_lo is None or self.speedup_hi is None:
            return None
        return [self.speedup_lo, self.speedup_hi]

    @property
    def half_band(self) -> float | None:
        return (self.band[1] - self.band[0]) / 2 if self.band else None

    def took(self) -> timedelta | None:
        """From when an evaluator began, or where that is not known from when it was proposed, to the verdict."""
        return self.judged_at - (self.evaluation_started_at or self.created_at) if self.judged_at else None

    @property
    def waited(self) -> timedelta | None:
        """From the first line of its proposal to when an evaluator began."""
        return self.evaluation_started_at - self.created_at if self.evaluation_started_at else None

    def signed_sha256(self, range_: dict[str, Any] | None = None) -> str:
        """What an approval signs: candidate files, problem, harness version, report and range."""
        report = self.parsed_report()
        body = {
            "backend": self.backend,
            "files": self.files,
            "problem": self.campaign.problem_sha256,
            "harness": report.harness_version if report else None,
            "report": hashlib.sha256(self.report.encode()).hexdigest(),
            "range": range_,
        }
        return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()

    @property
    def trial_id(self) -> str:
        """By which a measurement of a stack calls it."""
        return f"attempt-{self.pk}"

    def open_blocks(self) -> int:
        """Blocking flags that nobody has dismissed."""
        return self.flags.filter(severity="block").exclude(state="dismissed").count()
