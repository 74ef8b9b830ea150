"""What a campaign does next, as a pure function of its state. No database, no clock, no queue."""

from __future__ import annotations

from dataclasses import dataclass

LOOKAHEAD = 1
"""Proposals made while an evaluator is busy, so that it never waits for a model."""


@dataclass(frozen=True)
class Situation:
    """A campaign, as far as the next step depends on it."""

    state: str
    gate: str
    parallel: int
    proposing: int
    ready: int
    evaluating: int
    judged: int
    waiting_for_review: int
    budget_attempts: int
    budget_s: float | None
    elapsed_s: float
    best_speedup: float | None
    target_speedup: float | None
    exhausted: str
    proposes: bool = True
    """False: candidates come in from outside (REST, MCP), and none is asked for."""
    ahead: int = LOOKAHEAD
    """Proposals under way beyond ``parallel``: as many as a model is slower than an evaluator."""
    budget_tokens: int | None = None
    spent_tokens: int = 0
    budget_usd: float | None = None
    spent_usd: float = 0.0

    @property
    def in_flight(self) -> int:
        return self.proposing + self.ready + self.evaluating

    @property
    def made(self) -> int:
        return self.judged + self.in_flight


@dataclass(frozen=True)
class Step:
    """``propose`` new attempts to begin, ``evaluate`` ready ones to send out, or ``finish`` with the reason."""

    propose: int = 0
    evaluate: int = 0
    finish: str = ""


def goal_reached(now: Situation) -> str:
    """Why the campaign needs no further attempt, or an empty string."""
    if now.target_speedup and now.best_speedup and now.best_speedup >= now.target_speedup:
        return f"target reached: {now.best_speedup:.2f}× of {now.target_speedup:.2f}×"
    if now.judged >= now.budget_attempts:
        return f"budget spent: {now.judged} attempts"
    if now.budget_s is not None and now.elapsed_s >= now.budget_s:
        return f"budget spent: {now.budget_s:.0f} s"
    if now.budget_tokens is not None and now.spent_tokens >= now.budget_tokens:
        return f"budget spent: {now.spent_tokens:,} of {now.budget_tokens:,} tokens"
    if now.budget_usd is not None and now.spent_usd >= now.budget_usd:
        return f"budget spent: ${now.spent_usd:.2f} of ${now.budget_usd:.2f}"
    return ""


def next_step(now: Situation) -> Step:
    """The next step of a campaign.

    A running campaign keeps ``parallel`` evaluations under way and ``ahead`` proposals more, and ends once nothing is in
    flight and its goal is reached or the agent has nothing more. A paused one lets go of nothing that is under way.
    """
    if now.state != "running":
        return Step()
    reason = goal_reached(now)
    if reason:
        return Step(finish=reason) if not now.evaluating else Step()
    if now.exhausted and not now.in_flight:
        return Step(finish=f"the agent has nothing more to offer: {now.exhausted}")
    send = max(0, min(now.ready, now.parallel - now.evaluating))
    if now.exhausted or not now.proposes or (now.gate == "person" and now.waiting_for_review):
        return Step(evaluate=send)
    wanted = now.parallel + now.ahead - now.in_flight
    return Step(propose=max(0, min(wanted, now.budget_attempts - now.made)), evaluate=send)
