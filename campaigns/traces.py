"""Traces that our own profiler took of attempts, kept as they came so that an archive can carry them.

Only those of ``torch``: they were taken in the evaluator's sandbox and hold no environment (``docs/profiles.md``). A
trace lies under its sha256, readable by the server's account only, for as long as a row of an attempt names it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete, pre_delete

from campaigns.models import AttemptProfile
from profiling.capture import MAX_TRACE_BYTES
from profiling.models import Profile

TOOL = "torch"
NAME = re.compile(r"[0-9a-f]{64}")


def path_of(sha256: str) -> Path:
    if not NAME.fullmatch(sha256):
        raise ValueError(f"{sha256[:80]!r} is no sha256")
    return Path(settings.MEDIA_ROOT) / "traces" / sha256


def keep(content: bytes) -> str:
    """Store a trace, whole or not at all, and return its sha256. The same bytes are stored once.

    Raises ``OSError`` without room, ``ValueError`` for more than ``MAX_TRACE_BYTES``.
    """
    if not 0 < len(content) <= MAX_TRACE_BYTES:
        raise ValueError(f"a trace of {len(content):,} bytes; 1 to {MAX_TRACE_BYTES:,} are kept")
    sha256 = hashlib.sha256(content).hexdigest()
    path = path_of(sha256)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{secrets.token_hex(6)}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return sha256


def read(sha256: str) -> bytes | None:
    """The trace; None where it is not there any more, or not what its name says."""
    try:
        with path_of(sha256).open("rb") as file:
            content = file.read(MAX_TRACE_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


def drop_unnamed(sha256: str) -> None:
    """Remove a trace that no row names any more."""
    if sha256 and not AttemptProfile.objects.filter(trace_sha256=sha256).exists():
        path_of(sha256).unlink(missing_ok=True)


def _row_deleted(sender: Any, instance: AttemptProfile, **more: Any) -> None:
    transaction.on_commit(lambda: drop_unnamed(instance.trace_sha256))


def _profile_deleted(sender: Any, instance: Profile, **more: Any) -> None:
    """Who deletes a profile wants it gone: the trace goes with it, and no later archive holds it."""
    rows = AttemptProfile.objects.filter(profile=instance).exclude(trace_sha256="")
    for sha256 in set(rows.values_list("trace_sha256", flat=True)):
        transaction.on_commit(lambda sha256=sha256: drop_unnamed(sha256))  # type: ignore[misc]
    rows.update(trace_sha256="")


def connect() -> None:
    post_delete.connect(_row_deleted, sender=AttemptProfile, dispatch_uid="trace of a deleted row")
    pre_delete.connect(_profile_deleted, sender=Profile, dispatch_uid="trace of a deleted profile")
