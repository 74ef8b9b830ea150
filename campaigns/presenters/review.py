"""The review queue: what waits, oldest first, and what is signed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from campaigns.models import Attempt, RejectKind, Verdict

from .evidence import difference, evidence
from .problem import sweep_axis


def waiting() -> QuerySet[Attempt]:
    """Kept and undecided, oldest first. Imported ones were for others to decide."""
    own = Attempt.objects.filter(campaign__imported_from__isnull=True)
    return own.filter(verdict=Verdict.KEPT, decision="").order_by("judged_at", "pk")


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


def candidate(attempt: Attempt, against: str = "incumbent") -> dict[str, Any]:
    """Everything on the review's one screen."""
    axis = sweep_axis(attempt.campaign)
    measured = [row.axes[axis] for row in attempt.measurements.filter(speedup__isnull=False) if axis in row.axes]
    return {
        **evidence(attempt),
        **place(attempt),
        "diff": difference(attempt, against),
        "sha256": attempt.signed_sha256(),
        "history": history(attempt),
        "reject_kinds": RejectKind.choices,
        "axis": axis,
        "axis_bounds": (min(measured), max(measured)) if measured else None,
        "open_blocks": attempt.open_blocks(),
        "flag_counts": flag_counts(attempt),
    }


def history(attempt: Attempt) -> list[dict[str, Any]]:
    """All decisions, the latest first, each with whether what was signed is still what is stored."""
    reviews = list(attempt.reviews.select_related("reviewer").order_by("-seq"))
    for review in reviews:
        review.attempt = attempt
    return [{"review": review, "stale": review.is_stale()} for review in reviews]


def flag_counts(attempt: Attempt) -> dict[str, int]:
    severities = list(attempt.flags.exclude(state="dismissed").values_list("severity", flat=True))
    return {severity: severities.count(severity) for severity in ("note", "warning", "block")}
