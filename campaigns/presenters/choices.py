"""What a person chooses from when a campaign is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from autoresearch_web.local.hardware import local_kinds
from campaigns import catalog
from campaigns.harness.candidate import starts
from campaigns.harness.problem import Problem, ProblemError, load_problem, read_folder
from campaigns.models import Campaign
from campaigns.proposers import registry
from campaigns.proposers.base import ProposerError
from campaigns.proposers.endpoints import named

DEFAULT_RULES = Path(__file__).resolve().parent.parent / "context" / "rules" / "default.md"


@dataclass(frozen=True)
class ProblemChoice:
    """A problem of the catalogue. ``error``: its folder is broken, and why; it is shown, and cannot be taken."""

    name: str
    title: str
    summary: str = ""
    backends: list[tuple[str, str]] = field(default_factory=list)
    """Each with the backend of the kernel that a campaign in it starts from."""
    baselines: list[tuple[str, str]] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    visible: int = 0
    hidden: int = 0
    error: str = ""


def problems() -> list[ProblemChoice]:
    return [problem(name) for name in catalog.all()]


def problem(name: str) -> ProblemChoice:
    try:
        found = load_problem(read_folder(catalog.find(name)))
    except (ProblemError, OSError) as error:
        return ProblemChoice(name, name, error=str(error))
    return from_problem(found)


def from_problem(found: Problem) -> ProblemChoice:
    hidden = sum(workload.hidden for workload in found.workloads)
    return ProblemChoice(
        name=found.name,
        title=found.title or found.name,
        summary=found.summary,
        backends=list(starts(found).items()),
        baselines=[(name, spec.title or name) for name, spec in found.baselines.items()],
        devices=sorted({workload.device for workload in found.workloads}),
        visible=len(found.workloads) - hidden,
        hidden=hidden,
    )


def agents() -> list[dict[str, Any]]:
    return [{"name": name, "title": e.title, "summary": e.summary} for name, e in registry.PROPOSERS.items()]


def hardware() -> list[str]:
    """What this machine has, and what campaigns ran on before; CPU last."""
    before = Campaign.objects.order_by().values_list("hardware", flat=True).distinct()
    return [*sorted({*local_kinds(), *before} - {"cpu"}), "cpu"]


def replay_root() -> Path:
    """Where folders of candidates lie that a page may name (``actions.create`` refuses others)."""
    return Path(settings.AUTORESEARCH_HOME) / "replays"


def replay_folders() -> list[str]:
    root = replay_root()
    return sorted(str(path) for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def default_rules() -> str:
    return DEFAULT_RULES.read_text(encoding="utf-8")


def endpoints() -> list[str]:
    """Named model servers, of both protocols. A wrong setting lists none; using one says what is wrong."""
    try:
        return sorted({name for protocol in registry.MODELS for name in named(protocol)})
    except ProposerError:
        return []
