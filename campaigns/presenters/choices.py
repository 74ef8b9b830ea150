"""What a person chooses from when a campaign is made."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.utils import timezone

from autoresearch_web.local.hardware import local_kinds
from campaigns import catalog
from campaigns.harness.candidate import starts, tunables
from campaigns.harness.errors import CandidateError
from campaigns.harness.problem import Problem, ProblemError, load_problem, read_folder
from campaigns.harness.request import CandidateSource
from campaigns.models import Campaign, EvaluatorHost
from campaigns.models.evaluator_host import SILENT_AFTER
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


def nothing_to_turn(name: str, backend: str) -> bool:
    """Whether the kernel that a campaign begins from declares no parameter, so that the tuner would end at once."""
    try:
        files = read_folder(catalog.find(name))
        found = load_problem(files)
        language = starts(found)[backend]
        start = found.start[language]
        return not tunables(CandidateSource(backend=language, files={PurePosixPath(start).name: files[start]}))
    except (ProblemError, CandidateError, OSError, KeyError):
        return False  # said by whoever creates it


def agents() -> list[dict[str, Any]]:
    return [{"name": name, "title": e.title, "summary": e.summary} for name, e in registry.PROPOSERS.items()]


@dataclass(frozen=True)
class Kinds:
    """Kinds of hardware. ``there``: this machine's own and those whose evaluators are heard, CPU last; ``before``: others
    that campaigns of this place were made for."""

    there: list[str]
    before: list[str]

    def for_devices(self, devices: list[str]) -> str:
        """The first that is there and can run a problem on these devices (``cpu``, ``cuda``); any that is there if none can."""
        fits = [kind for kind in self.there if ("cpu" if kind == "cpu" else "cuda") in devices]
        return (fits or self.there)[0]


def hardware() -> Kinds:
    alive = EvaluatorHost.objects.filter(last_seen__gt=timezone.now() - SILENT_AFTER)
    there = {*local_kinds(), *(host.queue.removeprefix("gpu.") for host in alive)}
    own = Campaign.objects.filter(imported_from=None).order_by().values_list("hardware", flat=True).distinct()
    return Kinds([*sorted(there - {"cpu"}), *(there & {"cpu"})], sorted(set(own) - there))


def suggested(text: str, names: list[str]) -> str:
    """The problem that a marked region is about: the one most of whose name stands in ``text`` (``mla_decode`` where there
    are ``mla`` and ``decode_step#1``). Empty where less than two thirds of any name does."""
    words = set(re.split(r"[^a-z0-9]+", text.lower()))
    shares = {name: [part in words for part in name.lower().split("_")] for name in names}
    ranked = sorted(shares, key=lambda name: (-sum(shares[name]) / len(shares[name]), -len(shares[name]), name))
    best = ranked[0] if ranked else ""
    return best if best and 3 * sum(shares[best]) >= 2 * len(shares[best]) else ""


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
