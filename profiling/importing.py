"""Import a stored upload, once, whoever is killed meanwhile."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from profiling import child
from profiling.importers.limits import Refused
from profiling.models import Profile, State
from profiling.models.profile import report_fields
from profiling.silence import clock, silent

log = logging.getLogger(__name__)
MAX_ATTEMPTS = 3
"""An import whose process dies is tried again; one that takes its worker with it each time is not, for ever."""


def enqueue(profile: Profile) -> None:
    """Send the import to the queue. When there is no broker the row waits, and ``watch`` sends it later."""
    from profiling.tasks import import_profile

    Profile.objects.filter(pk=profile.pk, state=State.UPLOADED).update(heartbeat_at=timezone.now())
    try:
        import_profile.apply_async((str(profile.pk),), queue="profiles", retry=False)
    except Exception as error:
        log.warning("could not queue the import of %s: %s", profile.pk, error)


def watch() -> None:
    """Send again what was uploaded or begun and has been silent since."""
    if clock.was_set():
        return
    after_s = settings.LOST_AFTER_S
    unsent = (Q(heartbeat_at=None) & silent("created_at", after_s)) | silent("heartbeat_at", max(60, after_s))
    lost = (Q(state=State.IMPORTING) & silent("heartbeat_at", after_s)) | (Q(state=State.UPLOADED) & unsent)
    for profile in Profile.objects.filter(lost):
        enqueue(profile)


def run(pk: str) -> bool:
    """Import the profile, unless somebody else is at it. False: somebody is; ask again later."""
    profile = Profile.objects.filter(pk=pk).first()
    if profile is None or not profile.is_busy():
        return True
    token = uuid.uuid4()
    if not profile.claim(token):
        return not profile.is_busy()
    if profile.attempts > MAX_ATTEMPTS:
        hint = "The file is kept. Ask for another try, or capture a shorter window."
        profile.fail(token, State.FAILED, f"the import was killed {MAX_ATTEMPTS} times in a row", hint)
        return True
    import_claimed(profile, token)
    return True


def import_claimed(profile: Profile, token: uuid.UUID) -> None:
    for left_behind in profile.folder.glob(f".{profile.store_path.name}.*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    try:
        report = in_child(
            profile.upload_path,
            profile.store_path,
            profile.name,
            lambda percent, phase: profile.note_progress(token, percent, phase),
        )
    except Refused as refused:
        state = State.NEEDS_EXPORT if refused.needs_export else State.FAILED
        profile.fail(token, state, refused.error, refused.hint, refused.format)
    except child.Stopped:
        log.info("import of %s was called off", profile.pk)
        if not Profile.objects.filter(pk=profile.pk).exists():
            shutil.rmtree(profile.folder, ignore_errors=True)
    else:
        keep(profile, token, report)


def in_child(file: Path, store: Path, name: str, tell: Callable[[int, str], bool]) -> dict[str, Any]:
    """``child.run_import`` within the limits that the settings give."""
    limits = settings.PROFILE_IMPORT_LIMIT_S, settings.PROFILE_IMPORT_MEMORY_BYTES
    return child.run_import(file, store, name, *limits, tell, settings.PROFILE_NSYS, settings.SANDBOX_OPTIONAL)


def keep(profile: Profile, token: uuid.UUID, report: dict[str, Any]) -> None:
    """Mark as ready, then drop the upload: it holds the environment, host and processes of the captured machine."""
    if profile.finish(token, report):
        profile.upload_path.unlink(missing_ok=True)


def import_file(path: Path, name: str, sha256: str, tell: Callable[[int, str], bool]) -> Profile:
    """Import a file of this machine at once, for the command line. The file itself stays where it is.

    :param tell: called with percent and phase.
    :raises Refused: nothing is stored then.
    """
    known = Profile.objects.filter(sha256=sha256).first()
    if known and known.is_ready():
        return known
    profile = known or Profile(name=name[:200], sha256=sha256, size_bytes=path.stat().st_size)
    report = in_child(path, profile.store_path, name, tell)
    fields = report_fields(report) | {"state": State.READY, "progress": 100, "phase": "", "error": "", "hint": ""}
    for key, value in fields.items():
        setattr(profile, key, value)
    profile.save()
    profile.upload_path.unlink(missing_ok=True)
    return profile
