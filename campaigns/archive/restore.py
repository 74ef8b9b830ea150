"""An archive as a campaign: marked as imported, only read, and compared with the archive before it is committed."""

from __future__ import annotations

from typing import IO, Any

import msgspec
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, transaction
from django.utils import timezone

from campaigns import captures, traces
from campaigns.context.cards import KINDS, Card
from campaigns.harness import report as reports
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import load_problem
from campaigns.models import (
    Attempt,
    Campaign,
    CardVersion,
    Event,
    Flag,
    Idea,
    Measurement,
    Phase,
    Review,
    State,
    Steering,
)

from . import profiled
from .collect import parts_of
from .container import Archive, from_json
from .errors import ArchiveError, KnownError
from .people import People
from .records import from_record, insert

QUIET = (State.DRAFT, State.PAUSED, State.FINISHED, State.STOPPED, State.FAILED)


def restore(file: IO[bytes], name: str, person: AbstractBaseUser | None, *, recorded: bool = False) -> Campaign:
    """Import an archive. Raises ``ArchiveError``, and then nothing was written; ``KnownError`` where it is here already.

    :param recorded: it comes with the product, and pages call it so.
    """
    archive = Archive(file)
    refuse_known(archive)
    origin = {
        "file": name[:200],
        "sha256": archive.sha256,
        "by": person.get_username() if person else None,
        "at": timezone.now().isoformat(),
        "region": archive.json("region.json") if archive.has("region.json") else None,
    }
    if recorded:
        origin["recorded"] = True
    restoring = _Restoring(archive)
    try:
        with transaction.atomic():
            refuse_known(archive)  # two that take in the same file at once come here one after the other
            campaign = restoring.campaign(origin)
            compare(archive, campaign)
    except BaseException as error:
        restoring.forget_traces()
        raise _said(error) from None
    transaction.on_commit(lambda: captures.open_kept(campaign.pk), robust=True)
    return campaign


def refuse_known(archive: Archive) -> None:
    if known := Campaign.objects.filter(imported_from__sha256=archive.sha256).first():
        raise KnownError(f"This archive was imported before: campaign {known.pk}, {known.title}.", known.pk)


def _said(error: BaseException) -> BaseException:
    if isinstance(error, (DatabaseError, OverflowError, UnicodeEncodeError, RecursionError)):
        return ArchiveError(f"The archive contradicts itself, and the database refused it: {error}")
    return error


class _Restoring:
    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.people = People()
        self.attempts: dict[int, Attempt] = {}
        self.ideas: list[Idea] = []
        self.cards: dict[Any, CardVersion] = {}
        self.traces: list[str] = []
        """Kept on the disk, where no rollback removes them."""

    def forget_traces(self) -> None:
        for sha256 in self.traces:
            traces.drop_unnamed(sha256)

    def campaign(self, origin: dict[str, Any]) -> Campaign:
        also = {"created_by", "incumbent", "problem_files", "start_files"}
        record, values = self.record(Campaign, "campaign.json", also)
        if values.get("state") not in QUIET:
            raise ArchiveError("campaign.json: state: an archive holds no campaign that runs.")
        values["problem_files"] = self.texts(record.get("problem_files"), "campaign.json: problem_files")
        values["start_files"] = self.texts(record.get("start_files"), "campaign.json: start_files")
        values["created_by"] = self.people.get(record.get("created_by"), "campaign.json: created_by")
        try:
            load_problem(values["problem_files"])
        except ProblemError as error:
            raise ArchiveError(f"campaign.json: the problem cannot be read: {error}") from None
        (campaign,) = insert(Campaign, [{**values, "imported_from": origin}])
        self.ideas = self.authored(Idea, campaign, "ideas.json")
        self.authored(Steering, campaign, "steerings.json")
        self.attempt_rows(campaign)
        self.events(campaign)
        if record.get("incumbent") is not None:
            campaign.incumbent = self.attempt(record["incumbent"], "campaign.json: incumbent")
            campaign.save(update_fields=["incumbent"])
        return campaign

    def record(self, model: Any, path: str, also: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        record = self.archive.json(path)
        values = from_record(model, record, path, also)
        return record, values

    def rows(self, value: Any, where: str) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            raise ArchiveError(f"{where}: not a list of records.")
        return value

    def texts(self, named: Any, where: str) -> dict[str, str]:
        """Source path → text, each read from the part that the record names."""
        if not isinstance(named, dict):
            raise ArchiveError(f"{where}: not a table of files.")
        found = {}
        for path, part in named.items():
            try:
                found[path] = self.archive.read(str(part)).decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise ArchiveError(f"{part}: not UTF-8 text.") from None
        return found

    def authored(self, model: Any, campaign: Campaign, path: str) -> list[Any]:
        made = []
        for number, record in enumerate(self.rows(self.archive.json(path), path), 1):
            where = f"{path}: {number}"
            author = self.people.get(record.get("author"), where)
            made.append({**from_record(model, record, where, {"author"}), "campaign": campaign, "author": author})
        return insert(model, made)

    def attempt_rows(self, campaign: Campaign) -> None:
        paths = [
            p
            for p in self.archive.paths
            if p.startswith("attempts/") and p.endswith("/attempt.json") and p.count("/") == 2
        ]
        parents: dict[int, int] = {}
        for path in paths:
            record = self.archive.json(path)
            attempt = self.attempt_row(campaign, path, record)
            if record.get("parent") is not None:
                parents[attempt.number] = record["parent"]
        for number, parent in parents.items():
            self.attempts[number].parent = self.attempt(parent, f"attempt {number}: parent")
        Attempt.objects.bulk_update(self.attempts.values(), ["parent"], batch_size=200)

    def attempt_row(self, campaign: Campaign, path: str, record: Any) -> Attempt:
        also = {"idea", "parent", "files", "report", "cards", "measurements", "flags", "reviews", "profiles"}
        values = from_record(Attempt, record, path, also)
        if values.get("phase") not in (Phase.JUDGED, Phase.DROPPED):
            raise ArchiveError(f"{path}: phase: an archive holds no attempt that is under way.")
        values["files"] = self.texts(record.get("files"), f"{path}: files")
        values["report"] = self.report(record.get("report"), path)
        values["idea"] = self.idea(record.get("idea"), f"{path}: idea")
        (attempt,) = insert(Attempt, [{**values, "campaign": campaign}])
        self.attempts[attempt.number] = attempt
        attempt.cards.set([self.card(part, f"{path}: cards") for part in record.get("cards", [])])
        self.below(Measurement, attempt, record.get("measurements"), f"{path}: measurements", None)
        self.below(Flag, attempt, record.get("flags"), f"{path}: flags", "decided_by")
        self.below(Review, attempt, record.get("reviews"), f"{path}: reviews", "reviewer")
        self.traces += profiled.restore(self.archive, attempt, record.get("profiles", []), f"{path}: profiles")
        return attempt

    def below(self, model: Any, attempt: Attempt, value: Any, where: str, person: str | None) -> None:
        made = []
        for number, record in enumerate(self.rows(value, where), 1):
            values = from_record(model, record, f"{where}: {number}", {person} if person else set())
            if person:
                values[person] = self.people.get(record.get(person), f"{where}: {number}")
            made.append({**values, "attempt": attempt})
        insert(model, made)

    def report(self, part: Any, where: str) -> str:
        if part is None:
            return ""
        data = self.archive.read(str(part))
        try:
            reports.decode(data)
            return data.decode()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ArchiveError(f"{part}: no report: {error}") from None

    def card(self, part: Any, where: str) -> CardVersion:
        """A card in the wording that an attempt saw. It is kept as a version; none comes into force by it."""
        if part in self.cards:
            return self.cards[part]
        name, _, file = str(part).removeprefix("cards/").rpartition("/")
        (text,) = self.texts({"": part}, where).values()
        card = Card(name=name, text=text)
        if card.kind not in KINDS or len(name) > 100 or file != f"{card.sha256}.md":
            raise ArchiveError(f"{where}: {part} is no context card, or its name does not say what it holds.")
        row, _ = CardVersion.objects.get_or_create(
            name=name, sha256=card.sha256, defaults={"text": text, "origin": "imported"}
        )
        self.cards[part] = row
        return row

    def idea(self, number: Any, where: str) -> Idea | None:
        if number is None:
            return None
        if not isinstance(number, int) or not 1 <= number <= len(self.ideas):
            raise ArchiveError(f"{where}: there is no idea {number!r}.")
        return self.ideas[number - 1]

    def attempt(self, number: Any, where: str) -> Attempt:
        if not isinstance(number, int) or number not in self.attempts:
            raise ArchiveError(f"{where}: there is no attempt {number!r}.")
        return self.attempts[number]

    def events(self, campaign: Campaign) -> None:
        made = []
        for position, record in enumerate(self.rows(self.archive.json("events.json"), "events.json"), 1):
            where = f"events.json: {position}"
            values = from_record(Event, record, where, {"attempt"})
            if "idea" in values.get("data", {}):
                idea = self.idea(values["data"]["idea"], where)
                values["data"] = {**values["data"], "idea": idea.pk if idea else None}
            number = record.get("attempt")
            values["attempt"] = None if number is None else self.attempt(number, where)
            made.append({**values, "campaign": campaign})
        insert(Event, made)


def compare(archive: Archive, campaign: Campaign) -> None:
    """What was written must be what the archive says, part by part: nothing lost, rounded or ambiguous."""
    campaign.refresh_from_db()
    seen = set()
    for path, data in parts_of(campaign):
        seen.add(path)
        there = archive.read(path)
        same = there == data or (path.endswith(".json") and _covers(from_json(there, path), from_json(data, path)))
        if not same:
            raise ArchiveError(f"{path}: cannot be kept as it is: it says something twice, or in another form.")
    if extra := sorted(set(archive.paths) - seen):
        raise ArchiveError(f"{extra[0]}: belongs to nothing in the campaign.")


def _covers(said: Any, kept: Any) -> bool:
    """Whether all that an archive says was kept. An older one says less: it lacks fields that have come since."""
    if isinstance(said, dict):
        return isinstance(kept, dict) and all(key in kept and _covers(value, kept[key]) for key, value in said.items())
    if isinstance(said, list):
        return isinstance(kept, list) and len(said) == len(kept) and all(map(_covers, said, kept))
    return type(said) is type(kept) and bool(said == kept)
