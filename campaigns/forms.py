from __future__ import annotations

import os
from typing import Any

from django import forms
from django.core.validators import RegexValidator

from campaigns.actions import NewCampaign
from campaigns.models import Gate, Policy
from campaigns.presenters import choices
from campaigns.proposers import registry
from profiling.models import Region

HARDWARE = RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", "A kind is a short word such as cpu, h200 or rtx-4090.")

NOTHING_TO_TURN = (
    "The start kernel of this problem declares no numbers to turn, so the tuner would end at once. Choose a model or your "
    "own agent, or declare some in the kernel (docs/problems.md, “Tunable parameters”)."
)


class NewCampaignForm(forms.Form):
    """What a person types. Whether it can run is checked by ``actions.create``; what is wrong stays as it was typed."""

    problem = forms.ChoiceField()
    idea = forms.CharField(max_length=20_000, error_messages={"required": "Say the idea in a sentence."})
    title = forms.CharField(max_length=200, required=False)
    backend = forms.CharField(max_length=20, required=False)
    baseline = forms.CharField(max_length=50, required=False)
    hardware = forms.CharField(max_length=50, validators=[HARDWARE])
    agent = forms.ChoiceField()
    replay_directory = forms.CharField(max_length=1000, required=False)
    model = forms.CharField(max_length=200, required=False)
    endpoint = forms.CharField(max_length=40, required=False)
    budget_tokens = forms.IntegerField(min_value=1_000, max_value=10**13, required=False)
    budget_usd = forms.FloatField(min_value=0.01, max_value=1e7, required=False)
    parallel = forms.IntegerField(min_value=1, max_value=64, required=False)
    proposals_ahead = forms.IntegerField(min_value=1, max_value=64, required=False)
    policy = forms.ChoiceField(choices=Policy.choices, required=False)
    rules = forms.CharField(max_length=50_000, required=False)
    gate = forms.ChoiceField(choices=Gate.choices)
    budget_attempts = forms.IntegerField(min_value=1, max_value=100_000)
    budget_minutes = forms.FloatField(min_value=0.1, max_value=100_000, required=False)
    target_speedup = forms.FloatField(min_value=0.01, max_value=1e6, required=False)
    region = forms.ModelChoiceField(
        Region.objects.select_related("profile", "author"),
        required=False,
        error_messages={"invalid_choice": "The marked region is gone. Mark it again, or start without it."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["problem"].choices = [(p.name, p.title) for p in choices.problems() if not p.error]  # type: ignore[attr-defined]
        self.fields["agent"].choices = [(name, name) for name in registry.names()]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("agent") == "replay" and not cleaned.get("replay_directory", "").strip():
            self.add_error("replay_directory", "Replay needs the folder that holds the candidates.")
        if (
            cleaned.get("agent") in registry.MODELS
            and not cleaned.get("model", "").strip()
            and not default_model(cleaned)
        ):
            self.add_error("model", "Say which model: its name at the endpoint.")
        if cleaned.get("agent") == "tuner" and choices.nothing_to_turn(
            cleaned.get("problem", ""), cleaned.get("backend", "")
        ):
            self.add_error("agent", NOTHING_TO_TURN)
        return cleaned

    def as_new(self) -> NewCampaign:
        given = self.cleaned_data
        minutes = given["budget_minutes"]
        return NewCampaign(
            problem=given["problem"],
            idea=given["idea"],
            title=given["title"],
            backend=given["backend"] or None,
            baseline=given["baseline"] or None,
            hardware=given["hardware"],
            agent=given["agent"],
            agent_options=self.agent_options(),
            rules=given["rules"].replace("\r\n", "\n"),
            gate=given["gate"],
            budget_attempts=given["budget_attempts"],
            budget_seconds=round(minutes * 60) if minutes else None,
            target_speedup=given["target_speedup"],
            region=given["region"],
            budget_tokens=given["budget_tokens"],
            budget_usd=given["budget_usd"],
            parallel=given["parallel"] or 1,
            proposals_ahead=given["proposals_ahead"],
            policy=given["policy"] or Policy.TURNS,
        )

    def agent_options(self) -> dict[str, Any]:
        if self.cleaned_data["agent"] in registry.MODELS:
            named = {key: self.cleaned_data[key].strip() for key in ("model", "endpoint")}
            return {key: value for key, value in named.items() if value}
        if self.cleaned_data["agent"] != "replay":
            return {}
        return {"directory": self.cleaned_data["replay_directory"].strip()}


def default_model(cleaned: dict[str, Any]) -> str:
    """The administrator's choice where a campaign names no model."""
    return os.environ.get(f"{cleaned['agent'].upper()}_MODEL", "")
