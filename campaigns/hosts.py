"""Which evaluators are there, and what follows when one of them has other versions than before.

Evaluators write themselves down at the broker (``campaigns.harness.presence``); here it becomes rows. When a driver,
torch or Triton is another one than a kernel in force was measured with, the kernel is measured again, a few at a time.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from campaigns import dispatch, remeasuring
from campaigns.actions.errors import ActionError
from campaigns.harness.presence import KEY, NAMES
from campaigns.library import shelf
from campaigns.models import Cause, EvaluatorHost, Kernel, Remeasurement, RemeasureState
from campaigns.models.evaluator_host import SILENT_AFTER, fingerprint
from profiling.silence import is_silent, silent

log = logging.getLogger(__name__)
AT_ONCE = 2
"""Re-measurements under way for one host because of its versions: campaigns want evaluators, too."""
NOTED_EVERY = timedelta(seconds=15)


def watch() -> None:
    """What evaluators say of themselves, into rows; then whatever their versions ask for. Cheap when nothing changed."""
    for said in announced():
        note(said)
    for host in EvaluatorHost.objects.exclude(silent("last_seen", SILENT_AFTER.total_seconds())):
        if host.fingerprint and host.checked != host.fingerprint:
            measure_again(host)


def announced() -> list[dict[str, Any]]:
    names = sorted(_text(name) for name in dispatch.broker().smembers(NAMES))
    found = dispatch.broker().mget([f"{KEY}{name}" for name in names]) if names else []
    return [json.loads(text) for text in found if text]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def note(said: dict[str, Any]) -> EvaluatorHost:
    """Write down what a host says of itself. Other versions than before are remembered with the time."""
    about, now = said["about"], timezone.now()
    row, is_new = EvaluatorHost.objects.get_or_create(
        queue=said["queue"][:60],
        name=about["name"][:200],
        defaults={"kind": about["kind"][:200], "about": about, "gpu": said.get("gpu") or {}},
    )
    changed = row.about != about or row.gpu != (said.get("gpu") or {})
    if is_new or not (changed or is_silent(row.last_seen, NOTED_EVERY.total_seconds())):
        return row
    before, after = row.fingerprint, fingerprint(about.get("versions") or {})
    if before != after:
        log.warning("%s: %s, before: %s", row, after or "no versions", before or "none")
        row.versions_before, row.versions_changed_at = before, now
    row.kind, row.about, row.gpu, row.last_seen = about["kind"][:200], about, said.get("gpu") or {}, now
    row.save(update_fields=["kind", "about", "gpu", "last_seen", "versions_before", "versions_changed_at"])
    return row


def measure_again(host: EvaluatorHost) -> None:
    """Ask for the next few kernels in force that were measured under other versions than this host has now. Once none is
    left the host counts as checked. Safe to call at any time, and twice at once: a row per kernel and versions."""
    versions = host.fingerprint
    asked = Remeasurement.objects.filter(cause=Cause.VERSIONS, versions=versions)
    free = AT_ONCE - asked.filter(state=RemeasureState.WAITING).count()
    if free <= 0:
        return
    known = set(asked.values_list("attempt_id", flat=True))
    left = [kernel for kernel in affected(host) if kernel.review.attempt_id not in known]
    for kernel in left[:free]:
        try:
            remeasuring.ask(kernel.review.attempt, None, Cause.VERSIONS, versions)
        except ActionError as error:  # somebody measures it this moment: the next look takes it
            log.info("%s: %s", kernel, error)
            return
        except (OperationalError, RedisError, ConnectionError) as error:
            log.warning("the broker does not answer: %s", error)
            return
    if len(left) <= free:
        EvaluatorHost.objects.filter(pk=host.pk, checked=host.checked).update(checked=versions)


def affected(host: EvaluatorHost) -> list[Kernel]:
    """Kernels in force that this host's kind measures, and whose figures are of other versions."""
    rows = [k for k in shelf.kernels() if k.hardware == host.kind and f"gpu.{campaign_hardware(k)}" == host.queue]
    return [k for k in rows if measured_with(k) != host.fingerprint and k.in_force()]


def campaign_hardware(kernel: Kernel) -> str:
    return kernel.review.attempt.campaign.hardware


def measured_with(kernel: Kernel) -> str:
    """The versions of the report that was signed."""
    report = kernel.review.attempt.parsed_report()
    return fingerprint(report.host.versions) if report else ""


def check_again(kind: str) -> None:
    """A kernel of this kind came on the shelf: its versions are compared, too."""
    EvaluatorHost.objects.filter(kind=kind).update(checked="")


def broken() -> list[dict[str, Any]]:
    """Kernels in force whose latest finished re-measurement says that they no longer hold, the latest first."""
    latest: dict[int, Remeasurement] = {}
    done = Remeasurement.objects.filter(state=RemeasureState.DONE).defer("report")
    for row in done.order_by("id"):
        latest[row.attempt_id] = row
    gone = {pk: row for pk, row in latest.items() if row.holds is False}
    if not gone:
        return []
    kernels = Kernel.objects.filter(review__attempt__in=gone, withdrawn_at=None)
    found = [
        {"kernel": kernel, "again": gone[kernel.review.attempt_id]}
        for kernel in kernels.select_related("review__attempt__campaign")
        if kernel.in_force()
    ]
    return sorted(found, key=lambda item: -item["again"].pk)
