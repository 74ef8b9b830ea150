from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.core.validators import MaxLengthValidator
from django.db import models

from profiling import summary
from profiling.words import duration

from .profile import Profile

MAX_NOTE_CHARS = 4000


class Region(models.Model):
    """A stretch of a profile that a person marked, with what they think of it. Times in ns, as in the capture."""

    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="regions")
    start_ns = models.BigIntegerField()
    end_ns = models.BigIntegerField()
    note = models.TextField(blank=True, validators=[MaxLengthValidator(MAX_NOTE_CHARS)])
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    figures = models.JSONField(default=dict, help_text="profiling.summary.window, as of when it was marked")

    class Meta:
        ordering = ("start_ns", "id")
        constraints = [
            models.CheckConstraint(condition=models.Q(end_ns__gt=models.F("start_ns")), name="region_has_a_length")
        ]

    def __str__(self) -> str:
        return self.note[:80] or f"{duration(self.start_ns)} – {duration(self.end_ns)}"

    def get_absolute_url(self) -> str:
        margin = max(1, (self.end_ns - self.start_ns) // 20)
        view = {"from": self.start_ns - margin, "to": self.end_ns + margin, "region": self.pk}
        return f"{self.profile.get_absolute_url()}?{urlencode(view)}"

    def span_ns(self) -> int:
        return self.end_ns - self.start_ns

    def measure(self) -> None:
        """Work out the figures from the profile's store. Call after a change of the borders, before saving."""
        self.figures = summary.window(self.profile.open_trace(), self.start_ns, self.end_ns)

    def summary(self) -> dict[str, Any]:
        """What ran in the region: span, kernels, busy share per GPU, top kernels, NVTX ranges; label of the capture."""
        about = {"profile": self.profile.name, "label": self.profile.label, "gpus": self.profile.gpus}
        return {**self.figures, **about, "note": self.note}

    def where(self) -> str:
        """The innermost NVTX range around the region, else the outermost ones in it, else the times."""
        ranges = self.figures.get("ranges", [])
        around: list[list[str]] = [r["path"] for r in ranges if r["encloses"]]
        if around:
            return " / ".join(sorted(around, key=len)[-1])
        inside = sorted((r for r in ranges if len(r["path"]) == 1), key=lambda r: r["first_ns"])
        inside = [r for r in inside if r["total_ns"] * 20 > self.span_ns()]
        if not inside:
            return f"{duration(self.start_ns)} – {duration(self.end_ns)}"
        first, last = inside[0]["path"][0], inside[-1]["path"][0]
        return first if first == last else f"{first} … {last}"

    def busy_share(self) -> float | None:
        shares = [device["busy_share"] for device in self.figures.get("devices", [])]
        return sum(shares) / len(shares) if shares else None

    def as_context(self) -> str:
        """The region for an agent, as compact Markdown; every name from the capture is fenced as data."""
        profile = self.profile
        label = f"{profile.label}: {profile.label_reason}" if profile.label else "not labelled"
        times = f"{duration(self.start_ns)} to {duration(self.end_ns)} of a {profile.producer or 'profile'} capture"
        return summary.as_markdown(self.figures, times, label, self.note, self.findings_here())

    def findings_here(self) -> list[str]:
        """Findings of the profile that lie in the region for the greater part."""
        found = []
        for finding in self.profile.findings:
            inside = min(finding["end_ns"], self.end_ns) - max(finding["start_ns"], self.start_ns)
            if 2 * inside > finding["end_ns"] - finding["start_ns"]:
                found.append(f"{finding['title']}: {finding['evidence']}")
        return found
