"""Finished campaigns that come with the product, recorded on hardware that a visitor may lack: to be read, never run."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import redis
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from campaigns import archive, dispatch, notify
from campaigns.models import Attempt, Campaign

log = logging.getLogger(__name__)
FOLDER = Path(settings.BASE_DIR) / "campaigns" / "recorded"
PATIENCE = timedelta(seconds=45)
"""So long the campaign that runs here has the machine to itself, unless its first verdict comes sooner."""


KEY = "recordings:import"
FORGOTTEN_S = 60
"""A word about an import counts for so long: one that died says nothing any more."""
ASKED, TAKEN = "recordings:asked", "recordings:taken"
"""Whether somebody looked lately if it has to go on; and whether all files were gone through, those that are refused with them."""
TITLE = "Demo: MLA decode on this machine's CPU"
"""Of the campaign that the demo runs here."""


@dataclass(frozen=True)
class Import:
    """How far the import of recorded campaigns is."""

    done: int
    total: int


def under_way() -> Import | None:
    """None where none goes on, or where the broker is silent."""
    try:
        told = dispatch.broker().get(KEY)
    except redis.RedisError:
        return None
    found = Import(**json.loads(told)) if told else None
    return found if found and found.done < found.total else None


def say(done: int, total: int) -> None:
    """Tell Home how far it is; nothing hangs on it."""
    text = json.dumps({"done": done, "total": total})
    going_on = done < total
    try:
        before = dispatch.broker().set(KEY, text, ex=FORGOTTEN_S if going_on else 1, get=True)
    except redis.RedisError as error:
        log.info("the import's progress is not told: %s", error)
        return
    if before != text.encode():
        notify.home_changed()


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.zip"))


def not_here() -> list[Path]:
    """Files of whose names no campaign is here."""
    known = set(Campaign.objects.filter(imported_from__recorded=True).values_list("imported_from__file", flat=True))
    return [path for path in files() if path.name not in known]


def in_its_way(live: int) -> bool:
    """Whether a campaign that was just made still waits for its first verdict: an import would take a core from it."""
    young = Campaign.objects.filter(pk=live, created_at__gt=timezone.now() - PATIENCE, ended_at=None)
    return young.exists() and not Attempt.objects.filter(campaign=live).exclude(verdict="").exists()


def take_in() -> list[Campaign]:
    """Import what was not imported before. A file that is refused is said in the log, and harms no other."""
    made = []
    new = not_here()
    for path in files():
        if path in new:
            say(new.index(path), len(new))
        try:
            with path.open("rb") as file:
                made.append(archive.restore(file, path.name, None, recorded=True))
        except archive.KnownError:
            continue
        except (archive.ArchiveError, OSError) as error:
            log.warning("the recorded campaign %s is not imported: %s", path.name, error)
    try:
        dispatch.broker().set(TAKEN, "1")
    except redis.RedisError as error:
        log.info("that the import is over is not told: %s", error)
    if new:
        say(len(new), len(new))
    return made


def watch() -> None:
    """Have an import go on that was lost with its worker or with the broker: the demo's campaign is here, and some are not."""
    if not dispatch.broker().set(ASKED, "1", nx=True, ex=FORGOTTEN_S) or dispatch.broker().exists(KEY):
        return
    live = Campaign.objects.filter(title=TITLE, imported_from__isnull=True).order_by("-id").first()
    if live is not None and not dispatch.broker().exists(TAKEN) and not_here():
        dispatch.take_recorded(live.pk)


def campaigns() -> QuerySet[Campaign]:
    """Those that are here, in the order of their files' names."""
    return Campaign.objects.filter(imported_from__recorded=True).order_by("id")
