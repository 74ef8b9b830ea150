"""The cards as they hold now: what lies on disk, covered by what people chose in the browser; and every wording kept."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from campaigns.models import Attempt, Campaign, CardHead, CardVersion

from .cards import Card, CardChanged, CardError, checked, choose, on_disk
from .device import card_of


def team_folder() -> Path:
    return Path(settings.AUTORESEARCH_HOME) / "context"


def current() -> tuple[dict[str, Card], list[str]]:
    """Every card by name, and what is wrong with files that are left out."""
    cards, faults = on_disk(team_folder())
    heads = CardHead.objects.exclude(version=None).select_related("version")
    cards.update({head.name: head.version.card() for head in heads if head.version})
    return dict(sorted(cards.items())), faults


def chosen_for(campaign: Campaign) -> list[Card]:
    """The cards that a campaign's agent is given: those named for it, else those that fit; with what the host says."""
    cards, _ = current()
    if campaign.context_cards is not None:
        return [cards[name] for name in campaign.context_cards if name in cards]
    found = choose(
        cards.values(), hardware=campaign.hardware, backend=campaign.backend, about=what_it_says(campaign.problem_files)
    )
    device = device_card(campaign.hardware)
    return [*found[:1], device, *found[1:]] if device else found


def what_it_says(problem_files: dict[str, str]) -> str:
    """The texts by which a problem names the model that it is from: its description, without the code."""
    return "\n".join(problem_files.get(path, "") for path in ("problem.toml", "README.md"))


def device_card(hardware: str) -> Card | None:
    """Made from the newest report of a host with this hardware. None: no host has reported yet."""
    measured = Attempt.objects.filter(campaign__hardware=hardware).exclude(report="").order_by("-judged_at")
    newest = measured.only("report").first()
    report = newest.parsed_report() if newest else None
    return card_of(hardware, report.host) if report else None


def version_of(card: Card) -> CardVersion:
    """The row of this exact wording, made when it is first used."""
    found, _ = CardVersion.objects.get_or_create(
        name=card.name, sha256=card.sha256, defaults={"text": card.text, "origin": card.origin}
    )
    return found


def edit(name: str, text: str, *, seen: str, person: User | None, note: str = "") -> CardVersion:
    """Make ``text`` what holds. ``seen``: the hash of what the person began from; empty for a new card.

    Raises ``CardError``, also when somebody else was faster; nothing is written then.
    """
    card = checked(name, text, "edited")
    with transaction.atomic():
        head, _ = CardHead.objects.get_or_create(name=name)
        now = current()[0].get(name)
        if (now.sha256 if now else "") != seen:
            raise CardChanged(
                f"{name} was changed since you opened it. What holds now stands above and is compared with yours below: "
                "put together what shall hold, then save once more."
            )
        if now and now.sha256 == card.sha256:
            raise CardError(f"{name}: nothing was changed.")
        if now:
            version_of(now)  # so that it can be gone back to
        version, _ = CardVersion.objects.get_or_create(
            name=name,
            sha256=card.sha256,
            defaults={"text": card.text, "origin": "edited", "author": person, "note": note.strip()[:300]},
        )
        point(head, version)
    return version


def go_back(version: CardVersion) -> None:
    """Let an earlier wording hold again. When it is what lies on disk, the file holds, and later changes of it."""
    with transaction.atomic():
        head, _ = CardHead.objects.get_or_create(name=version.name)
        disk = on_disk(team_folder())[0].get(version.name)
        point(head, None if disk and disk.sha256 == version.sha256 else version)


def point(head: CardHead, version: CardVersion | None) -> None:
    changed = CardHead.objects.filter(pk=head.pk, seq=head.seq).update(version=version, seq=F("seq") + 1)
    if not changed:
        raise CardError(f"{head.name} was changed by somebody else at this moment. Open it again.")
