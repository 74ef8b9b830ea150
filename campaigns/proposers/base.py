"""What a proposer gets and gives. Plain data both ways, so that any of them can be run, replayed and tested alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from campaigns.harness.report import Report
from campaigns.harness.request import CandidateSource

OnText = Callable[[str], None]
"""Takes streamed text as it comes, piece by piece."""
ShouldStop = Callable[[], bool]
"""Asked between pieces of work: True once nobody waits for the proposal any more."""


@dataclass(frozen=True, kw_only=True)
class PastAttempt:
    """An attempt that has its files: judged, or still on its way (``verdict`` is then empty)."""

    number: int
    verdict: str
    candidate: CandidateSource
    speedup: float | None = None
    """Over the campaign's baseline. None: not measured."""
    over_incumbent: float | None = None
    """Over what was the incumbent at that time."""
    title: str = ""
    reason: str = ""
    """Why the verdict is what it is, and why a person rejected it. Text from outside: data, never instructions."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_incumbent: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that a proposer may know. Hidden workloads, the reference and seeds are not in it."""

    problem: str
    backend: str
    incumbent: CandidateSource
    """The best candidate so far; the start kernel at first."""
    start: CandidateSource
    number: int
    """The attempt that is asked for, counted from 1. Also the seed of what is drawn at random."""
    attempts: tuple[PastAttempt, ...] = ()
    title: str = ""
    summary: str = ""
    readme: str = ""
    hardware: str = "cpu"
    idea: str = ""
    steering: tuple[str, ...] = ()
    """What people said to the agent in the course of the campaign, oldest first."""
    rules: str = ""
    context: str = ""
    """Cards on hardware, model and language, as Markdown."""
    region: str = ""
    """Summary of the profile region that a person marked."""
    lessons: tuple[str, ...] = ()
    """What earlier campaigns on this problem and hardware taught, a line each. Text from outside: data."""
    interface: str = ""
    """Entry point, inputs, outputs, tolerances and the visible workloads, as Markdown."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a proposal cost. ``input_tokens`` is the whole prompt, ``cached_input_tokens`` its part from a cache."""

    model: str
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is not known."""
    requests: int = 1


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One candidate to judge."""

    candidate: CandidateSource
    title: str
    """One line: what was tried."""
    rationale: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    """None where no model was asked."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to a model, as its server counted it. Tokens are None where the server did not say."""

    model: str
    outcome: str
    """``answered``, ``refused``, ``cut``, ``stopped`` or ``failed``."""
    input_tokens: int | None = None
    """All of them, cached ones included."""
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    price_usd: Decimal | None = None
    """None: the price is not known."""
    seconds: float = 0.0
    request_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a proposer that asks a model has at hand beside its task. Whoever runs it hands it over as ``desk``."""

    note_call: Callable[[Call], None] = lambda call: None
    """SHALL be called for each request as soon as it has ended, however it ended."""
    quick_check: Callable[[CandidateSource, ShouldStop], Report] | None = None
    """Build and measure on visible workloads only. None: not to be had. Raises ``ProposerError``."""
    refusal: Callable[[CandidateSource], str] = lambda candidate: ""
    """Why the candidate would not be measured (it was tried before), or an empty string."""
    cards: Mapping[str, str] = field(default_factory=dict)
    """Context cards that are not in the task's context but may be read: name → Markdown."""
    read_kernel: Callable[[str, str], str] | None = None
    """A kernel of the marked region's capture by part of its name, and metrics by words of theirs, as plain text. None: no
    capture belongs to the campaign. Raises ``LookupError`` with what there is instead."""
    tokens_left: int | None = None
    usd_left: float | None = None
    """What this proposal may cost at most. None: no limit."""


class Exhausted(Exception):
    """The proposer has nothing more to offer; the message says why."""


class IdeaSpent(Exhausted):
    """The proposer holds that this idea cannot work; the message says why. Other ideas may go on."""


class ProposerError(Exception):
    """No proposal could be made. ``retryable``: the same question may succeed later (overload, cut connection)."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Proposer(Protocol):
    """Made anew for each proposal from the campaign's options: whatever it must remember is in the task."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """SHALL raise ``ProposerError`` that names the option, when one is missing or wrong."""

    def propose(self, task: Task, *, on_text: OnText | None = None, should_stop: ShouldStop | None = None) -> Proposal:
        """SHALL return one candidate, or raise ``Exhausted`` or ``ProposerError``. MAY call ``on_text`` with progress.

        SHALL ask ``should_stop`` once a second where it takes longer than that, and raise ``ProposerError`` on True.
        """
        ...
