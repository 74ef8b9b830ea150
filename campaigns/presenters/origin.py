"""Of an imported campaign: on what it was measured, when and by whose idea, so that nobody takes it for a run of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from campaigns.archive.people import SUFFIX
from campaigns.harness.report import Host
from campaigns.models import Campaign

MAX_HOSTS = 5


class _Measured(msgspec.Struct):
    """All that is read of a report here."""

    host: Host


@dataclass(frozen=True)
class Origin:
    recorded: bool
    """It comes with the product; else a person imported it."""
    hardware: list[str]
    """The processors that its reports name, with their hosts; the kind alone where nothing was evaluated."""
    first: datetime
    last: datetime
    people: list[str]
    """Whose ideas it tried, by the names that the archive gives them."""

    @property
    def word(self) -> str:
        return "Recorded" if self.recorded else "Imported"

    @property
    def where(self) -> str:
        return " and on ".join(self.hardware)

    @property
    def whose(self) -> str:
        return " and ".join(f"“{name}”" for name in self.people)


def origin_of(campaign: Campaign) -> Origin | None:
    """None for a campaign of this installation."""
    if campaign.imported_from is None:
        return None
    first = campaign.started_at or campaign.created_at
    names = campaign.ideas.exclude(author=None).order_by("id").values_list("author__username", flat=True)
    return Origin(
        recorded=campaign.is_recorded,
        hardware=hardware(campaign),
        first=first,
        last=max(first, campaign.ended_at or first),
        people=[name.removesuffix(SUFFIX) for name in dict.fromkeys(names)],
    )


def hardware(campaign: Campaign) -> list[str]:
    measured = campaign.attempts.exclude(report="").order_by("number")
    found: dict[str, None] = {}
    for name in measured.values_list("host", flat=True).distinct().order_by("host")[:MAX_HOSTS]:
        report = measured.filter(host=name).values_list("report", flat=True).first() or ""
        try:
            host = msgspec.json.decode(report, type=_Measured).host
        except msgspec.MsgspecError:
            continue
        found[f"{host.hardware}, host {host.name}"] = None
    return list(found) or [campaign.hardware]
