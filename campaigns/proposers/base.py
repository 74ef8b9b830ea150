"""The border between a campaign and whoever proposes candidates: plain data in, plain data out.

A proposer knows no database. It is made anew for each proposal (``registry.make``), so what it learns it learns from
``Task.attempts``; a worker that dies in the middle costs one proposal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from campaigns.harness.request import CandidateSource


class PastAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt made before, or one under way (``verdict`` is empty then)."""

    number: int
    verdict: str
    speedup: float | None
    over_incumbent: float | None
    title: str
    reason: str
    parameters: dict[str, Any]
    candidate: CandidateSource
    is_incumbent: bool = False


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """All that a proposer may know. Hidden workloads, the reference and seeds are not in it."""

    problem: str
    title: str
    summary: str
    readme: str
    backend: str
    hardware: str
    idea: str
    steering: tuple[str, ...]
    rules: str
    context: str
    """Context cards as Markdown."""
    region: str
    """The summary of the profile region that the idea was marked on, as Markdown; may be empty."""
    incumbent: CandidateSource
    start: CandidateSource
    attempts: tuple[PastAttempt, ...]
    number: int
    """Of the attempt that is to be filled; proposers of sequences (replay) count by it."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's proposal cost. ``price_usd`` is None where the price is not known, never 0."""

    model: str
    input_tokens: int
    """All input tokens, cached ones included."""
    cached_input_tokens: int
    output_tokens: int
    price_usd: float | None = None
    requests: int = 1


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    candidate: CandidateSource
    title: str
    """What was tried, in one line."""
    rationale: str = ""
    parameters: dict[str, Any] = {}
    usage: Usage | None = None


class Exhausted(Exception):
    """There is nothing more to propose. The message says why; the campaign ends once all is judged."""


class ProposerError(Exception):
    """No proposal could be made. ``retryable``: another try may do better (overload, a malformed answer)."""

    def __init__(self, message: str, *, retryable: bool = False, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.usage = usage
        """What the failed try cost all the same."""


class Proposer(Protocol):
    def propose(
        self, task: Task, *, on_text: Callable[[str], None], should_stop: Callable[[], bool]
    ) -> Proposal:
        """The next candidate. SHALL call ``on_text`` with text as it comes, if it has any; SHALL look at ``should_stop``
        at least once a second and raise ``ProposerError`` when it is true. MAY raise ``Exhausted``."""
        ...
