"""Lays out for one proposal what a model may use beside its task: cards, budget, quick checks, the ledger."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from campaigns import briefing, checking, memory, money
from campaigns.context import library
from campaigns.context.cards import Card
from campaigns.models import Attempt
from campaigns.proposers.base import Call, Desk
from profiling import kernel_text
from profiling.models import Profile
from profiling.opened import Gone


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
        read_kernel=kernel_reader(attempt),
        tokens_left=tokens,
        usd_left=usd,
    )


def kernel_reader(attempt: Attempt) -> Callable[[str, str], str] | None:
    """Reads kernels of the capture in which the campaign's region was marked, while that capture is there."""
    region = attempt.campaign.region
    return None if region is None else partial(read_kernel, region.profile)


def read_kernel(profile: Profile, kernel: str, metrics: str) -> str:
    try:
        return kernel_text.describe(profile, kernel, metrics)
    except (kernel_text.NoSuchKernel, Gone) as error:
        raise LookupError(str(error)) from error
