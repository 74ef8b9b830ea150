"""The audit trail: who decided what, when, about which bytes. Read from rows that are only ever added."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from campaigns.models import Flag, FlagState, Kernel, KernelExport, Remeasurement, Review

FIELDS = ("at", "who", "what", "campaign", "campaign_title", "attempt", "range", "kind", "reason", "sha256", "stale")


def trail(campaign: int | None = None) -> list[dict[str, Any]]:
    """All entries, the latest first, with the keys of ``FIELDS``. Times are UTC in ISO 8601."""
    entries = [*reviews(campaign), *flags(campaign), *withdrawals(campaign), *again(campaign)]
    if campaign is None:
        entries += exports()
    return sorted(entries, key=lambda entry: entry["at"], reverse=True)


def entry(at: datetime | None, who: User | None, what: str, attempt: Any = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(FIELDS, "")
    if attempt is not None:
        found |= {
            "campaign": attempt.campaign_id,
            "campaign_title": attempt.campaign.title,
            "attempt": attempt.number,
        }
    at_text = at.isoformat(timespec="milliseconds") if at else ""
    return found | {"at": at_text, "who": who.get_username() if who else "", "what": what} | more


def reviews(campaign: int | None) -> Iterator[dict[str, Any]]:
    rows = Review.objects.select_related("reviewer", "attempt__campaign")
    for row in rows.filter(attempt__campaign=campaign) if campaign else rows:
        bounds = row.range
        yield entry(
            row.created_at,
            row.reviewer,
            row.decision,
            row.attempt,
            range=f"{bounds['lo']} ≤ {bounds['axis']} ≤ {bounds['hi']}" if bounds else "",
            kind=row.get_kind_display(),
            reason=row.reason,
            sha256=row.sha256,
            stale=row.is_stale(),
        )


def flags(campaign: int | None) -> Iterator[dict[str, Any]]:
    rows = Flag.objects.exclude(state=FlagState.OPEN).select_related("decided_by", "attempt__campaign")
    for row in rows.filter(attempt__campaign=campaign) if campaign else rows:
        what, kind = f"flag {row.state}", f"{row.rule} ({row.severity})"
        yield entry(row.decided_at, row.decided_by, what, row.attempt, kind=kind, reason=row.decision_reason)


def withdrawals(campaign: int | None) -> Iterator[dict[str, Any]]:
    rows = Kernel.objects.exclude(withdrawn_at=None).select_related("withdrawn_by", "review__attempt__campaign")
    for row in rows.filter(review__attempt__campaign=campaign) if campaign else rows:
        yield entry(
            row.withdrawn_at,
            row.withdrawn_by,
            "withdrawn",
            row.review.attempt,
            reason=row.withdrawn_reason,
            sha256=row.review.sha256,
        )


def again(campaign: int | None) -> Iterator[dict[str, Any]]:
    rows = Remeasurement.objects.exclude(ended_at=None).select_related("by", "attempt__campaign")
    for row in rows.filter(attempt__campaign=campaign) if campaign else rows:
        word = {True: "holds", False: "no longer holds", None: str(row.get_state_display())}[row.holds]
        what = f"measured again: {word}"
        yield entry(row.ended_at, row.by, what, row.attempt, kind=row.get_cause_display(), reason=row.reason)


def exports() -> Iterator[dict[str, Any]]:
    for row in KernelExport.objects.select_related("by").prefetch_related("kernels"):
        held = ", ".join(str(kernel) for kernel in row.kernels.all())
        yield entry(row.created_at, row.by, f"exported as {row.form}", kind=row.name, reason=held, sha256=row.sha256)
