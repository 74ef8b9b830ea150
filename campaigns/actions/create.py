"""A new campaign: idea, problem, agent, budget, checked together so that it can run the moment it is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from campaigns import catalog
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import load_problem, read_folder
from campaigns.models import Campaign, Event, Gate, Idea
from campaigns.proposers import registry
from profiling.models import Region

from .control import checked
from .errors import ActionError


@dataclass(frozen=True, kw_only=True)
class NewCampaign:
    """What a person decides. ``None`` takes the problem's first choice."""

    problem: str
    idea: str
    agent: str = "tuner"
    agent_options: dict[str, Any] = field(default_factory=dict)
    backend: str | None = None
    baseline: str | None = None
    hardware: str = "cpu"
    title: str = ""
    rules: str = ""
    gate: str = Gate.AUTO
    budget_attempts: int = 40
    budget_seconds: int | None = None
    target_speedup: float | None = None
    region: Region | None = None
    any_directory: bool = False
    """Whether a replay folder may lie anywhere: only for who has a shell on this machine anyway."""


def create(new: NewCampaign, person: User | None) -> Campaign:
    """Write the campaign as a draft, with its first idea. Raises ``ActionError`` for what could not run."""
    idea = checked(new.idea, "idea")
    try:
        files = read_folder(catalog.find(new.problem))
        problem = load_problem(files)
    except (ProblemError, catalog.UnknownProblem) as error:
        raise ActionError(str(error)) from error
    backend = chosen(new.backend, list(problem.start), f"start kernel of {problem.name} for the backend")
    baseline = chosen(new.baseline, list(problem.baselines), f"baseline of {problem.name}")
    if new.agent not in registry.names():
        raise ActionError(f"No agent {new.agent!r}. There are: {', '.join(registry.names())}.")
    if not 1 <= new.budget_attempts <= 100_000:
        raise ActionError("The budget is between 1 and 100,000 attempts.")
    if new.target_speedup is not None and not 0 < new.target_speedup < 1e6:
        raise ActionError("The target speed-up is a number above 0, such as 2.5.")
    if new.agent == "replay":
        check_replay(new)
    start = problem.start[backend]
    with transaction.atomic():
        campaign = Campaign.objects.create(
            title=new.title.strip()[:200] or f"{problem.title} on {new.hardware}",
            problem=problem.name,
            problem_files=files,
            problem_sha256=problem.sha256,
            backend=backend,
            start_files={PurePosixPath(start).name: files[start]},
            baseline=baseline,
            hardware=new.hardware,
            agent=new.agent,
            agent_options=new.agent_options,
            rules=new.rules,
            gate=new.gate,
            budget_attempts=new.budget_attempts,
            budget_seconds=new.budget_seconds,
            target_speedup=new.target_speedup,
            region=new.region,
            region_context=new.region.as_context() if new.region else "",
            created_by=person,
        )
        Idea.objects.create(campaign=campaign, text=idea, author=person)
        Event.record(campaign.pk, "campaign.created")
    return campaign


def check_replay(new: NewCampaign) -> None:
    """A replay folder exists; from a browser only those under ``$AUTORESEARCH_HOME/replays`` may be read."""
    directory = Path(str(new.agent_options.get("directory", ""))).resolve()
    allowed = Path(settings.AUTORESEARCH_HOME) / "replays"
    if not new.any_directory and not directory.is_relative_to(allowed):
        raise ActionError(
            f"A replay folder lies under {allowed}. Put the candidates there, or use `manage.py run_campaign`."
        )
    if not directory.is_dir():
        raise ActionError(f"{directory} is no folder. The replay agent wants a folder of candidates.")
    new.agent_options["directory"] = str(directory)


def chosen(wanted: str | None, choices: list[str], what: str) -> str:
    if not choices:
        raise ActionError(f"There is no {what}.")
    if wanted and wanted not in choices:
        raise ActionError(f"There is no {what} {wanted!r}. There are: {', '.join(choices)}.")
    return wanted or choices[0]
