"""Finished campaigns that come with the product, recorded on hardware that a visitor may lack: to be read, never run."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from campaigns import archive
from campaigns.models import Attempt, Campaign

log = logging.getLogger(__name__)
FOLDER = Path(settings.BASE_DIR) / "campaigns" / "recorded"
PATIENCE = timedelta(seconds=45)
"""So long the campaign that runs here has the machine to itself, unless its first verdict comes sooner."""


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.zip"))


def in_its_way(live: int) -> bool:
    """Whether a campaign that was just made still waits for its first verdict: an import would take a core from it."""
    young = Campaign.objects.filter(pk=live, created_at__gt=timezone.now() - PATIENCE, ended_at=None)
    return young.exists() and not Attempt.objects.filter(campaign=live).exclude(verdict="").exists()


def take_in() -> list[Campaign]:
    """Import what was not imported before. A file that is refused is said in the log, and harms no other."""
    made = []
    for path in files():
        try:
            with path.open("rb") as file:
                made.append(archive.restore(file, path.name, None, recorded=True))
        except archive.KnownError:
            continue
        except (archive.ArchiveError, OSError) as error:
            log.warning("the recorded campaign %s is not imported: %s", path.name, error)
    return made


def campaigns() -> QuerySet[Campaign]:
    """Those that are here, in the order of their files' names."""
    return Campaign.objects.filter(imported_from__recorded=True).order_by("id")
