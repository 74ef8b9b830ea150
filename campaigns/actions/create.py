"""A new campaign: idea, problem, agent, budget, checked together so that it can run the moment it is started."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from campaigns import catalog
from campaigns.harness.backends import BACKENDS
from campaigns.harness.candidate import starts as starts_of
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import load_problem, read_folder
from campaigns.models import Campaign, Event, Gate, Idea, Policy
from campaigns.proposers import registry
from campaigns.proposers.base import ProposerError
from profiling.models import Region

from .control import checked
from .errors import ActionError

MAX_OPTIONS_BYTES = 10_000
"""Names of a model and of its endpoint, and a few numbers."""


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
    budget_tokens: int | None = None
    budget_usd: float | None = None
    parallel: int = 1
    proposals_ahead: int | None = None
    """Proposals under way beyond ``parallel``. None: one, or three where the agent is a model."""
    policy: str = Policy.TURNS
    context_cards: list[str] | None = None
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
    starts = starts_of(problem)
    backend = chosen(
        new.backend or usual(list(problem.start), new.hardware), list(starts), f"backend for {problem.name}"
    )
    check_device(backend, new.hardware)
    baseline = chosen(new.baseline, list(problem.baselines), f"baseline of {problem.name}")
    if new.agent not in registry.names():
        raise ActionError(f"No agent {new.agent!r}. There are: {', '.join(registry.names())}.")
    if not 1 <= new.budget_attempts <= 100_000:
        raise ActionError("The budget is between 1 and 100,000 attempts.")
    if new.target_speedup is not None and not 0 < new.target_speedup < 1e6:
        raise ActionError("The target speed-up is a number above 0, such as 2.5.")
    check_options(new.agent_options)
    if new.agent == "replay":
        check_replay(new)
    check_model(new)
    ahead = new.proposals_ahead or (3 if new.agent in registry.MODELS else 1)
    start = problem.start[starts[backend]]
    with transaction.atomic():
        campaign = Campaign.objects.create(
            title=" ".join(new.title.split())[:200] or f"{problem.title} on {new.hardware}",
            problem=problem.name,
            problem_files=files,
            problem_sha256=problem.sha256,
            backend=backend,
            start_backend=starts[backend],
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
            budget_tokens=new.budget_tokens,
            budget_usd=new.budget_usd,
            parallel=new.parallel,
            proposals_ahead=ahead,
            policy=new.policy,
            context_cards=new.context_cards,
            region=new.region,
            region_context=new.region.as_context() if new.region else "",
            created_by=person,
        )
        Idea.objects.create(campaign=campaign, text=idea, author=person)
        Event.record(campaign.pk, "campaign.created")
    return campaign


def usual(backends: list[str], hardware: str) -> str | None:
    """What a person most likely wants who names none: Triton on a GPU, on a CPU the problem's first."""
    device = "cpu" if hardware == "cpu" else "cuda"
    fitting = [name for name in backends if name in BACKENDS and device in BACKENDS[name].devices]
    return "triton" if device == "cuda" and "triton" in fitting else next(iter(fitting), None)


def check_device(backend: str, hardware: str) -> None:
    """CUDA C++ has nothing to do on a CPU, nor C++ on a GPU; Triton is interpreted on a CPU, and no speed is claimed."""
    device = "cpu" if hardware == "cpu" else "cuda"
    if device not in BACKENDS[backend].devices:
        where = "a GPU" if device == "cpu" else "the CPU"
        fitting = ", ".join(name for name, one in BACKENDS.items() if device in one.devices)
        raise ActionError(
            f"{backend} runs on {where}, and the hardware is {hardware}. Choose other hardware, or one of {fitting}."
        )


def check_options(options: dict[str, Any]) -> None:
    """Options can be stored and shown: plain JSON, short, and text that is Unicode."""
    try:
        size_bytes = len(json.dumps(options, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ActionError(f"The agent's options cannot be stored as JSON: {error}") from None
    if size_bytes > MAX_OPTIONS_BYTES:
        raise ActionError(f"The agent's options have {size_bytes:,} bytes; {MAX_OPTIONS_BYTES:,} is the limit.")


def check_model(new: NewCampaign) -> None:
    """Options, key and budgets of a model are right before anything is asked of it; and nothing odd is of any other."""
    if new.agent in registry.MODELS:
        try:
            registry.make(new.agent, new.agent_options)
        except ProposerError as error:
            raise ActionError(str(error)) from error
    if new.budget_tokens is not None and not 1_000 <= new.budget_tokens <= 10**13:
        raise ActionError("The budget in tokens is at least 1,000: a prompt alone has more.")
    if new.budget_usd is not None and not 0 < new.budget_usd < 1e7:
        raise ActionError("The budget in dollars is a number above 0, such as 5.")
    if not 1 <= new.parallel <= 64 or not 1 <= (new.proposals_ahead or 1) <= 64:
        raise ActionError("Evaluations at once and proposals ahead are from 1 to 64.")
    if new.policy not in Policy.values:
        raise ActionError(f"No policy {new.policy!r}. There are: {', '.join(Policy.values)}.")


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
