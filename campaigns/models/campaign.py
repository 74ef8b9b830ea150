from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from campaigns.harness.request import CandidateSource

if TYPE_CHECKING:
    from .attempt import Attempt


class State(models.TextChoices):
    DRAFT = "draft"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = (State.FINISHED, State.STOPPED, State.FAILED)


class Gate(models.TextChoices):
    AUTO = "auto", "go on from provisional keeps"
    PERSON = "person", "wait for a person after each keep"


class Policy(models.TextChoices):
    TURNS = "turns", "ideas take turns"
    BANDIT = "bandit", "ideas that pay get more attempts"


class Campaign(models.Model):
    """One search: a problem, ideas, an agent, a budget. The problem is copied in, so that a later edit changes nothing."""

    title = models.CharField(max_length=200)
    problem = models.CharField(max_length=100)
    problem_files = models.JSONField()
    problem_sha256 = models.CharField(max_length=64)
    backend = models.CharField(max_length=20)
    start_backend = models.CharField(
        max_length=20, blank=True, default="", help_text="What the start kernel is written in; empty: in the backend"
    )
    start_files = models.JSONField(help_text="The kernel that the search begins from: path → text")
    baseline = models.CharField(max_length=50)
    hardware = models.CharField(max_length=50, default="cpu", help_text="Evaluations go to the queue gpu.<hardware>")
    agent = models.CharField(max_length=50)
    agent_options = models.JSONField(default=dict, blank=True)
    rules = models.TextField(blank=True)
    gate = models.CharField(max_length=10, choices=Gate, default=Gate.AUTO)
    parallel = models.PositiveSmallIntegerField(default=1, help_text="Evaluations under way at once")
    region = models.ForeignKey("profiling.Region", null=True, blank=True, on_delete=models.SET_NULL)
    region_context = models.TextField(blank=True, help_text="The marked region's summary as the agent reads it")

    budget_attempts = models.PositiveIntegerField(default=40)
    budget_seconds = models.PositiveIntegerField(null=True, blank=True)
    target_speedup = models.FloatField(null=True, blank=True)
    budget_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text="Input and output tokens of models")
    budget_usd = models.FloatField(null=True, blank=True, help_text="What models may cost")
    proposals_ahead = models.PositiveSmallIntegerField(default=1, help_text="Proposals under way beyond ``parallel``")
    policy = models.CharField(max_length=10, choices=Policy, default=Policy.TURNS)
    context_cards = models.JSONField(null=True, blank=True, help_text="Names of cards; null: chosen by what fits")

    state = models.CharField(max_length=10, choices=State, default=State.DRAFT, db_index=True)
    state_reason = models.CharField(max_length=500, blank=True)
    exhausted = models.CharField(max_length=500, blank=True, help_text="Why the agent has nothing more to offer")
    incumbent = models.ForeignKey(
        "campaigns.Attempt", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    attempt_seq = models.PositiveIntegerField(default=0)
    event_seq = models.PositiveBigIntegerField(default=0)

    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    resumed_at = models.DateTimeField(null=True, blank=True, help_text="Since when it has been running without a pause")
    ran_s = models.FloatField(default=0, help_text="Seconds of running before the last pause")
    imported_from = models.JSONField(
        null=True, blank=True, help_text="{file, sha256, by, at, region}: it came from an archive, and is only read"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("campaign", args=[self.pk])

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    @property
    def is_live(self) -> bool:
        return self.state in (State.QUEUED, State.RUNNING)

    @property
    def is_recorded(self) -> bool:
        """Whether it comes with the product, measured elsewhere."""
        return self.imported_from is not None and self.imported_from.get("recorded") is True

    @property
    def queue(self) -> str:
        return f"gpu.{self.hardware}"

    def start_candidate(self) -> CandidateSource:
        return CandidateSource(backend=self.start_backend or self.backend, files=self.start_files)

    def incumbent_candidate(self) -> CandidateSource:
        """The best kernel so far, or the start kernel."""
        return self.incumbent.candidate() if self.incumbent else self.start_candidate()

    def elapsed(self) -> timedelta:
        """Time spent running; pauses do not count."""
        running = (timezone.now() - self.resumed_at) if self.resumed_at and not self.is_ended else timedelta()
        return timedelta(seconds=self.ran_s) + max(timedelta(), running)  # the clock may have been set back

    def best(self) -> Attempt | None:
        """The incumbent: it won every comparison side by side that led to it. Not the highest speed-up ever read, which
        would be the luckiest reading."""
        return self.incumbent

    def tally(self) -> dict[str, int]:
        """How many attempts ended in each verdict."""
        rows = self.attempts.exclude(verdict="").values_list("verdict").annotate(n=models.Count("id"))
        return dict(rows)

    def judged_count(self) -> int:
        return self.attempts.exclude(verdict="").count()

    def waiting_for_review(self) -> int:
        return self.attempts.filter(verdict="kept", decision__in=("", "signed")).count()

    def move(self, *, to: State, from_: tuple[State, ...], **fields: Any) -> bool:
        """Change the state, if it is still one of ``from_``. False: somebody else was first, and nothing changed."""
        changed = Campaign.objects.filter(pk=self.pk, state__in=from_).update(state=to, **fields)
        if changed:
            self.refresh_from_db()
        return changed == 1
