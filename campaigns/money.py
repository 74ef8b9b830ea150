"""Tokens, money and evaluator seconds: written down call by call, summed for attempts, ideas, campaigns, people, models.

A number that nobody knows stays unknown: a sum over calls of which some have no price says how many those are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum

from campaigns.models import Attempt, Campaign, ModelCall, Phase
from campaigns.proposers.base import Call, Usage


@dataclass(frozen=True)
class Spent:
    """Sums over calls to models. ``usd`` leaves out ``without_price`` calls, the counts ``without_count`` ones."""

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)
    without_price: int = 0
    without_count: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def known_usd(self) -> Decimal | None:
        """The money, where every call has a price; else None."""
        return None if self.without_price else self.usd


SUMS: dict[str, Any] = {
    "n": Count("id"),
    "inputs": Sum("input_tokens"),
    "cached": Sum("cached_input_tokens"),
    "written": Sum("cache_write_tokens"),
    "outputs": Sum("output_tokens"),
    "usd": Sum("price_usd"),
    "unpriced": Count("id", filter=Q(price_usd=None)),
    "uncounted": Count("id", filter=Q(input_tokens=None) | Q(output_tokens=None)),
}


def spent(calls: QuerySet[ModelCall]) -> Spent:
    return as_spent(calls.order_by().aggregate(**SUMS))


def as_spent(row: dict[str, Any]) -> Spent:
    return Spent(
        calls=row["n"],
        input_tokens=row["inputs"] or 0,
        cached_input_tokens=row["cached"] or 0,
        cache_write_tokens=row["written"] or 0,
        output_tokens=row["outputs"] or 0,
        usd=Decimal(row["usd"] or 0),
        without_price=row["unpriced"],
        without_count=row["uncounted"],
    )


def by(calls: QuerySet[ModelCall], *keys: str) -> list[tuple[dict[str, Any], Spent]]:
    """Sums for each value of ``keys`` (``model``, ``attempt__idea``, ``person__username`` …), the dearest first."""
    rows = [(row, as_spent(row)) for row in calls.order_by().values(*keys).annotate(**SUMS)]
    found = [({key: row[key] for key in keys}, total) for row, total in rows]
    return sorted(found, key=lambda pair: (-pair[1].usd, -pair[1].tokens))


def note(attempt: Attempt, call: Call, agent: str) -> ModelCall:
    """A row for one request, written as soon as it has ended, whatever becomes of the attempt."""
    return ModelCall.objects.create(
        campaign_id=attempt.campaign_id,
        attempt=attempt,
        person_id=attempt.campaign.created_by_id,
        agent=agent,
        model=call.model[:200],
        backend=attempt.backend,
        outcome=call.outcome,
        input_tokens=call.input_tokens,
        cached_input_tokens=call.cached_input_tokens,
        cache_write_tokens=call.cache_write_tokens,
        output_tokens=call.output_tokens,
        price_usd=call.price_usd,
        seconds=call.seconds,
        request_id=call.request_id[:200],
    )


def note_reported(attempt: Attempt, usage: Usage) -> ModelCall:
    """What an agent from outside says that its model cost for one attempt."""
    price = None if usage.cost_usd is None else Decimal(str(usage.cost_usd))
    call = Call(
        model=usage.model,
        outcome="answered",
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        price_usd=price,
    )
    return note(attempt, call, attempt.proposer[:100])


def of_campaign(campaign: Campaign) -> Spent:
    return spent(ModelCall.objects.filter(campaign=campaign))


def reserve(attempt: Attempt) -> tuple[int | None, float | None]:
    """(tokens, dollars) that this proposal may cost at most; None where the campaign has no such budget.

    What is left is shared out among the proposals under way, under the campaign's lock, so that together they stay
    within it. A share is given back when the attempt is no longer proposing.
    """
    campaign = attempt.campaign
    if campaign.budget_tokens is None and campaign.budget_usd is None:
        return None, None
    with transaction.atomic():
        Campaign.objects.select_for_update().get(pk=campaign.pk)
        Attempt.objects.filter(pk=attempt.pk).update(reserved_tokens=None, reserved_usd=None)
        total = of_campaign(campaign)
        under_way = campaign.attempts.filter(phase=Phase.PROPOSING)
        held = under_way.aggregate(tokens=Sum("reserved_tokens"), usd=Sum("reserved_usd"))
        already = spent_by_holders(campaign)
        share = max(1, under_way.filter(reserved_tokens=None, reserved_usd=None).count())
        tokens = usd = None
        if campaign.budget_tokens is not None:
            free = campaign.budget_tokens - total.tokens - max(0, (held["tokens"] or 0) - already.tokens)
            tokens = max(0, free // share)
        if campaign.budget_usd is not None:
            free_usd = campaign.budget_usd - float(total.usd) - max(0.0, (held["usd"] or 0.0) - float(already.usd))
            usd = max(0.0, free_usd / share)
        Attempt.objects.filter(pk=attempt.pk).update(reserved_tokens=tokens, reserved_usd=usd)
    return tokens, usd


def spent_by_holders(campaign: Campaign) -> Spent:
    """What the proposals that hold a share have used of it already."""
    holders = Q(attempt__phase=Phase.PROPOSING) & (Q(attempt__reserved_tokens__gt=0) | Q(attempt__reserved_usd__gt=0))
    return spent(ModelCall.objects.filter(holders, campaign=campaign))


def evaluator_seconds(attempts: QuerySet[Attempt]) -> float:
    """Seconds that evaluators worked: for the verdicts, and for quick checks while proposing."""
    took = ExpressionWrapper(F("judged_at") - F("evaluation_started_at"), output_field=DurationField())
    judged = attempts.order_by().exclude(evaluation_started_at=None).exclude(judged_at=None)
    total = judged.aggregate(took=Sum(took))["took"]
    checks = attempts.order_by().aggregate(s=Sum("check_seconds"))["s"] or 0.0
    return float((total.total_seconds() if total else 0.0) + checks)


def cost_per_kept(campaign: Campaign) -> Decimal | None:
    """Dollars a kept kernel; None where none was kept or a price is not known."""
    kept = campaign.attempts.filter(verdict="kept").exclude(decision="rejected").count()
    usd = of_campaign(campaign).known_usd
    return usd / kept if kept and usd is not None else None
