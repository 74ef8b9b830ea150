"""Lays out for one proposal what a model may use beside its task: cards, budget, quick checks, the ledger."""

from __future__ import annotations

from functools import partial

from campaigns import briefing, checking, memory, money
from campaigns.context import library
from campaigns.context.cards import Card
from campaigns.models import Attempt
from campaigns.proposers.base import Call, Desk


def note_call(attempt: Attempt, call: Call) -> None:
    money.note(attempt, call, attempt.campaign.agent)


def desk_for(attempt: Attempt, cards: list[Card]) -> Desk:
    """The desk of an attempt's proposal; its share of the budget is taken from now on."""
    campaign = attempt.campaign
    attempt.cards.set([library.version_of(card) for card in cards])
    tokens, usd = money.reserve(attempt)
    return Desk(
        note_call=partial(note_call, attempt),
        quick_check=partial(checking.quick_check, attempt) if campaign.agent_options.get("checks", True) else None,
        refusal=lambda candidate: memory.refusal(campaign, candidate, besides=attempt.pk),
        cards=briefing.further_cards(cards),
        tokens_left=tokens,
        usd_left=usd,
    )
