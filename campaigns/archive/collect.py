"""A campaign as the parts of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from campaigns.models import Attempt, Campaign, CardVersion, State
from campaigns.models.attempt import IN_FLIGHT
from profiling.models import Region

from . import container, profiled
from .container import to_json
from .errors import ArchiveError
from .people import name_of
from .records import to_record

Parts = Iterator[tuple[str, bytes]]


def export(campaign: Campaign, file: IO[bytes]) -> str:
    """Write the campaign and return the archive's sha256. The same campaign gives the same bytes each time.

    Raises ``ArchiveError`` while it runs: an attempt that is under way has no place in a record.
    """
    campaign.refresh_from_db()
    under_way = campaign.attempts.filter(phase__in=IN_FLIGHT).count()
    if campaign.state in (State.QUEUED, State.RUNNING) or under_way:
        raise ArchiveError(
            f"The campaign is {campaign.get_state_display()}, {under_way} attempts are under way. "
            "Pause or stop it, let them end, and export it then."
        )
    return container.write(file, campaign.title, campaign.problem, parts_of(campaign))


def parts_of(campaign: Campaign) -> Parts:
    imported = campaign.imported_from is not None
    ideas = {idea.pk: number for number, idea in enumerate(campaign.ideas.order_by("id"), 1)}
    yield from _campaign(campaign, imported)
    yield (
        "ideas.json",
        to_json([_with(i, author=name_of(i.author, imported=imported)) for i in _authored(campaign.ideas)]),
    )
    notes = [_with(s, author=name_of(s.author, imported=imported)) for s in _authored(campaign.steerings)]
    yield "steerings.json", to_json(notes)
    for card in CardVersion.objects.filter(attempts__campaign=campaign).distinct().order_by("name", "sha256"):
        yield card_part(card), text_bytes(card.text)
    for attempt in campaign.attempts.order_by("number").select_related("parent").iterator(chunk_size=50):
        yield from _attempt(attempt, ideas, imported)
    yield "events.json", to_json(_events(campaign, ideas))


def _authored(rows: Any) -> Any:
    return rows.order_by("id").select_related("author")


def _with(row: Any, **more: Any) -> dict[str, Any]:
    return {**to_record(row), **more}


def _campaign(campaign: Campaign, imported: bool) -> Parts:
    problem, start = _named("problem", campaign.problem_files), _named("start", campaign.start_files)
    record = _with(
        campaign,
        created_by=name_of(campaign.created_by, imported=imported),
        incumbent=campaign.incumbent.number if campaign.incumbent else None,
        problem_files=problem,
        start_files=start,
    )
    record["agent_options"] = {
        k: v for k, v in record["agent_options"].items() if k != "directory"
    }  # a path on this machine
    yield "campaign.json", to_json(record)
    yield from _texts(problem, campaign.problem_files)
    yield from _texts(start, campaign.start_files)
    if region := region_of(campaign):
        yield "region.json", to_json(region)


def region_of(campaign: Campaign) -> dict[str, Any] | None:
    """The marked region in figures and words. Of a capture that a person uploaded nothing else is in an archive."""
    if campaign.imported_from is not None:
        found: dict[str, Any] | None = campaign.imported_from.get("region")
        return found
    region: Region | None = campaign.region
    if region is None:
        return None
    profile = region.profile
    about = {
        name: getattr(profile, name)
        for name in ("name", "sha256", "format", "producer", "gpus", "label", "label_title")
    }
    author = name_of(region.author, imported=False)
    times = {"start_ns": region.start_ns, "end_ns": region.end_ns}
    return {"profile": about, **times, "note": region.note, "author": author, "figures": region.figures}


def _attempt(attempt: Attempt, ideas: dict[int, int], imported: bool) -> Parts:
    folder = f"attempts/{attempt.number:05d}"
    files = _named(f"{folder}/files", attempt.files)
    flags = attempt.flags.order_by("id").select_related("decided_by")
    reviews = attempt.reviews.order_by("seq").select_related("reviewer")
    profiles, traces = profiled.records_of(attempt, folder)
    record = _with(
        attempt,
        idea=ideas.get(attempt.idea_id) if attempt.idea_id else None,
        parent=attempt.parent.number if attempt.parent else None,
        files=files,
        report=f"{folder}/report.json" if attempt.report else None,
        cards=[card_part(card) for card in attempt.cards.order_by("name", "sha256")],
        measurements=[to_record(m) for m in attempt.measurements.order_by("id")],
        profiles=profiles,
        flags=[_with(f, decided_by=name_of(f.decided_by, imported=imported)) for f in flags],
        reviews=[_with(r, reviewer=name_of(r.reviewer, imported=imported)) for r in reviews],
    )
    yield f"{folder}/attempt.json", to_json(record)
    if attempt.report:
        yield f"{folder}/report.json", text_bytes(attempt.report)
    yield from _texts(files, attempt.files)
    yield from traces.items()


def card_part(card: CardVersion) -> str:
    """A context card that an attempt saw, in its exact wording."""
    return f"cards/{card.name}/{card.sha256}.md"


def _events(campaign: Campaign, ideas: dict[int, int]) -> list[dict[str, Any]]:
    events = campaign.events.order_by("seq").select_related("attempt")
    records = [_with(e, attempt=e.attempt.number if e.attempt else None) for e in events]
    for record in records:
        if "idea" in record["data"]:  # an event names an idea by its row; an archive by its place
            record["data"] = {**record["data"], "idea": ideas.get(record["data"]["idea"])}
    return records


def _named(folder: str, files: dict[str, str]) -> dict[str, str]:
    """Source path → part. Paths come from agents: what is unusual in one is percent-encoded, so that no two meet."""
    return {path: f"{folder}/{'/'.join(_segment(s) for s in path.split('/'))}" for path in sorted(files)}


def _segment(text: str) -> str:
    if text.strip(".") == "":
        return "%" + text.replace(".", "%2E")
    return quote(text, safe=" +,=@", errors="surrogatepass")


def _texts(named: dict[str, str], files: dict[str, str]) -> Parts:
    for path, part in named.items():
        yield part, text_bytes(files[path])


def text_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
