"""A campaign's whole state in one strip of numbers, with its ideas: what a page gets at first and with every event."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.db.models import Count, FloatField, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from autoresearch_web.local.hardware import local_kinds
from campaigns import demo, money, recordings
from campaigns.models import UNDECIDED, Attempt, Campaign, Decision, EvaluatorHost, FlagState, Idea, Verdict
from campaigns.models.evaluator_host import SILENT_AFTER

from .problem import baseline_title

USUAL_KEEP_RATE = 0.2
"""About one attempt in five is worth keeping, in what teams report of kernel search; the rest is bad or no better."""

ENOUGH_FOR_A_RATE = 5
"""Judged attempts from which on a keep rate says something: one of one is no 100 %."""
STARTING = timedelta(seconds=45)
STANDS = Q(verdict=Verdict.KEPT) & ~Q(decision=Decision.REJECTED)
"""Kept, and no person turned it down."""


def strip(campaign: Campaign) -> dict[str, Any]:
    """The context of ``campaigns/_live.html``. Null where nothing was measured."""
    counts = campaign.attempts.aggregate(
        judged=Count("pk", filter=~Q(verdict="")),
        kept=Count("pk", filter=STANDS),
        turned_down=Count("pk", filter=Q(verdict=Verdict.KEPT, decision=Decision.REJECTED)),
        waiting=Count("pk", filter=Q(verdict=Verdict.KEPT, decision__in=UNDECIDED)),
        flagged=Count("pk", filter=Q(verdict=Verdict.FLAGGED)),
    )
    best = best_of(campaign)
    return {
        "campaign": campaign,
        "best": best,
        "floor_share": floor_share(best) if best else None,
        "keep_rate": counts["kept"] / counts["judged"] if counts["judged"] >= ENOUGH_FOR_A_RATE else None,
        "usual_keep_rate": USUAL_KEEP_RATE,
        "spent": spent(campaign),
        "ideas": ideas(campaign),
        "steerings": list(campaign.steerings.select_related("author").order_by("-id")[:5]),
        "open_flags": open_flags(campaign),
        "baseline_title": baseline_title(campaign),
        "recorded": list(recordings.campaigns()[:12]) if of_demo(campaign) else [],
        "nobody_measures": nobody_measures(campaign),
        **counts,
    }


def of_demo(campaign: Campaign) -> bool:
    """Whether it is the live campaign of the demo: beside it its page names those that were recorded."""
    return campaign.title == demo.TITLE and campaign.imported_from is None


def nobody_measures(campaign: Campaign) -> bool:
    """Whether it runs while no evaluator of its kind has been heard. One of this machine's own kinds is given time to start."""
    if not campaign.is_live or not campaign.started_at:
        return False
    if campaign.hardware in local_kinds() and timezone.now() - campaign.started_at < STARTING:
        return False
    hosts = EvaluatorHost.objects.filter(queue=f"gpu.{campaign.hardware}", last_seen__gt=timezone.now() - SILENT_AFTER)
    return not hosts.exists()


def best_of(campaign: Campaign) -> Attempt | None:
    """The kept attempt with the highest speed-up over the baseline that no person turned down."""
    return campaign.attempts.filter(STANDS, speedup__isnull=False).order_by("-speedup").first()


def floor_share(attempt: Attempt) -> float | None:
    """How near the physical floor it comes: geometric mean of floor ÷ time over the workloads that have both."""
    rows = attempt.measurements.filter(floor_us__gt=0, time_us__gt=0).values_list("floor_us", "time_us")
    shares = [math.log(floor_us / time_us) for floor_us, time_us in rows if floor_us and time_us]
    return math.exp(sum(shares) / len(shares)) if shares else None


def spent(campaign: Campaign) -> dict[str, float | None]:
    """Tokens and dollars by the ledger, proposals that failed included; null where no model was asked or no price is known.

    A campaign that came in an archive has no ledger: there the attempts say what they cost.
    """
    total = money.of_campaign(campaign)
    if not total.calls:
        return told_by_attempts(campaign.attempts.all())
    return {"tokens": total.tokens, "cost_usd": None if total.known_usd is None else float(total.known_usd)}


def told_by_attempts(attempts: QuerySet[Attempt]) -> dict[str, float | None]:
    names = ("input_tokens", "output_tokens", "cost_usd")
    sums = {name: Sum(Cast(KeyTextTransform(name, "usage"), FloatField())) for name in names}
    total = attempts.aggregate(**sums)
    tokens = [total[name] for name in names[:2] if total[name] is not None]
    return {"tokens": sum(tokens) if tokens else None, "cost_usd": total["cost_usd"]}


def ideas(campaign: Campaign) -> list[Idea]:
    """The ideas with their own tallies as ``n_tries``, ``n_kept``, ``best``."""
    stands = Q(attempts__verdict=Verdict.KEPT) & ~Q(attempts__decision=Decision.REJECTED)
    return list(
        campaign.ideas.select_related("author").annotate(
            n_tries=Count("attempts", filter=~Q(attempts__verdict="")),
            n_kept=Count("attempts", filter=stands),
            best=Max("attempts__speedup", filter=stands),
        )
    )


def open_flags(campaign: Campaign) -> int:
    """Flags that say more than a note and that nobody has decided."""
    return campaign.attempts.filter(flags__state=FlagState.OPEN).exclude(flags__severity="note").distinct().count()
