"""The review queue: what waits, oldest first, and what is signed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from campaigns.actions import signing
from campaigns.actions.decide import may_be_decided
from campaigns.models import UNDECIDED, Attempt, RejectKind, StackMeasurement, Verdict

from .evidence import difference, evidence, report_of
from .problem import sweep_axis
from .standing import range_words


def waiting() -> QuerySet[Attempt]:
    """Kept and undecided, oldest first. Imported ones were for others to decide."""
    own = Attempt.objects.filter(campaign__imported_from__isnull=True)
    return own.filter(verdict=Verdict.KEPT, decision__in=UNDECIDED).order_by("judged_at", "pk")


def place(attempt: Attempt) -> dict[str, Any]:
    """Where the attempt stands in the queue, with its neighbours. One that is decided already lies outside it."""
    queue = list(waiting().values_list("pk", flat=True))
    at = queue.index(attempt.pk) if attempt.pk in queue else -1
    after = queue[at + 1] if at + 1 < len(queue) else None
    return {
        "position": at + 1 or None,
        "total": len(queue),
        "next": after,
        "previous": queue[at - 1] if at > 0 else None,
    }


def candidate(attempt: Attempt, against: str = "incumbent", person: User | None = None) -> dict[str, Any]:
    """Everything on the review's one screen."""
    return {
        **evidence(attempt),
        **place(attempt),
        **decision_bar(attempt, person),
        "diff": difference(attempt, against),
        "history": history(attempt),
        "flag_counts": flag_counts(attempt),
    }


def decision_bar(attempt: Attempt, person: User | None) -> dict[str, Any]:
    """What is signed, by whom, and whether it may be signed now."""
    axis = sweep_axis(attempt.campaign)
    measured = [row.axes[axis] for row in attempt.measurements.filter(speedup__isnull=False) if axis in row.axes]
    won = [r for r in attempt.ranges or [] if r.get("axis") == axis]
    return {
        "attempt": attempt,
        "decidable": may_be_decided(attempt),
        "held_trial": StackMeasurement.that_held(attempt) if attempt.verdict == Verdict.STACKED else None,
        "sha256": attempt.signed_sha256(),
        "harness_version": harness_version(attempt),
        "signing": signatures(attempt, person),
        "reject_kinds": RejectKind.choices,
        "axis": axis,
        "axis_bounds": (won[0]["lo"], won[0]["hi"]) if won else (min(measured), max(measured)) if measured else None,
        "kept_for": ", ".join(filter(None, (range_words(r) for r in attempt.ranges or []))),
        "open_blocks": attempt.open_blocks(),
    }


def harness_version(attempt: Attempt) -> str:
    report, _ = report_of(attempt)
    return report.harness_version if report else ""


def signatures(attempt: Attempt, person: User | None) -> dict[str, Any]:
    """``wanted`` signatures, the ``first`` one where it is there, its ``range`` in words, and ``why_not`` this person."""
    first = signing.first_signature(attempt) if settings.REVIEW_SIGNATURES > 1 else None
    return {
        "wanted": settings.REVIEW_SIGNATURES,
        "first": first,
        "range": signing.words(first.range) if first else "",
        "why_not": signing.why_not_second(attempt, person, first) if first else "",
    }


def history(attempt: Attempt) -> list[dict[str, Any]]:
    """All decisions, the latest first, each with whether what was signed is still what is stored."""
    reviews = list(attempt.reviews.select_related("reviewer").order_by("-seq"))
    for review in reviews:
        review.attempt = attempt
    return [
        {
            "review": review,
            "stale": review.is_stale(),
            "superseded": place > 0 and not (review.decision == "signed" and reviews[place - 1].decision == "approved"),
        }
        for place, review in enumerate(reviews)
    ]


def flag_counts(attempt: Attempt) -> dict[str, int]:
    severities = list(attempt.flags.exclude(state="dismissed").values_list("severity", flat=True))
    return {severity: severities.count(severity) for severity in ("note", "warning", "block")}
