"""Profiles of kept attempts: asked for after the verdict, taken by the evaluator's host, imported like any upload.

Nothing here may fail an attempt or hold the loop up: what goes wrong is written beside the profile that is missing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

import msgspec
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from campaigns import dispatch, traces
from campaigns.harness.capturing import BASELINE, CANDIDATE, Trace
from campaigns.harness.inside.trace import MEASURED
from campaigns.models import Attempt, AttemptProfile
from profiling import uploads
from profiling.capture import MAX_TRACE_BYTES, PRODUCTS
from profiling.models import Profile
from profiling.silence import clock, silent

log = logging.getLogger(__name__)
OPEN = {"profile": None, "problem": "", "host": ""}
"""Of a profile that has not come. One that came has a host, also after a person has deleted it."""
PATIENCE = timedelta(hours=1)
"""After this the page says that a profile still waits for a host."""


def ask(attempt: Attempt) -> None:
    """Have a kept attempt profiled, and the baseline too where this campaign has no profile of it from that host."""
    if not settings.PROFILE_KEPT:
        return
    roles = [CANDIDATE] if known_baseline(attempt) else [CANDIDATE, BASELINE]
    try:
        for role in roles:
            AttemptProfile.objects.get_or_create(attempt=attempt, role=role, tool="torch")
        dispatch.capture(attempt, roles)
    except Exception:
        log.exception("no profile of %s could be asked for", attempt)


def open_kept(campaign: int) -> None:
    """Have the traces that came with an archive imported as profiles, like any upload; without a broker, ``watch`` does."""
    if not dispatch.answers():
        return
    take_in(AttemptProfile.objects.filter(attempt__campaign=campaign))


def take_in(rows: QuerySet[AttemptProfile]) -> None:
    """A profile for each row whose trace is kept and that has none. What cannot be taken now is tried again later."""
    for row in rows.filter(profile=None).exclude(trace_sha256="").select_related("attempt__campaign"):
        content = traces.read(row.trace_sha256)
        mine = AttemptProfile.objects.filter(pk=row.pk, profile=None)
        if content is None:
            mine.update(trace_sha256="")
            continue
        try:
            profile, _ = uploads.take(SimpleUploadedFile(name_of(row.attempt, row.role, row.tool), content), None)
            mine.update(profile=profile, asked_at=timezone.now())
        except (uploads.NotTaken, OSError) as error:
            log.warning("%s waits: %s", row, error)
            mine.update(asked_at=timezone.now())


def watch() -> None:
    """Ask again for profiles that were lost with their evaluator or with the broker, ``dispatch.MAX_TRIES`` times in all.

    Also has traces of an archive imported, where whoever took it in was killed before that.
    """
    if clock.was_set():
        return
    quiet = silent("asked_at", settings.LOST_AFTER_S)
    take_in(AttemptProfile.objects.filter(quiet))
    if not settings.PROFILE_KEPT:
        return
    rows = AttemptProfile.objects.filter(quiet, **OPEN, attempt__campaign__imported_from__isnull=True)
    for attempt in Attempt.objects.filter(pk__in=rows.values("attempt")).select_related("campaign", "parent"):
        try:
            look_after(attempt)
        except Exception:
            log.exception("could not look after the profiles of %s", attempt)


def look_after(attempt: Attempt) -> None:
    """Take in traces whose message was lost; ask again where neither traces nor an evaluator nor a message are there."""
    queue = attempt.campaign.queue
    if not dispatch.traces_of(attempt.ticket) and dispatch.capture_under_way(attempt.ticket, queue):
        return
    missing = list(attempt.profiles.filter(**OPEN))
    ids, tries = [row.pk for row in missing], max((row.tries for row in missing), default=0)
    if dispatch.traces_of(attempt.ticket):  # looked at once more: they may have come between the two looks
        attempt.profiles.filter(pk__in=ids).update(asked_at=timezone.now())
        dispatch.attach_profiles(attempt.ticket)
    elif tries >= dispatch.MAX_TRIES:
        for row in missing:
            note(attempt, row.role, f"{tries} evaluators were lost while they took it", row.tool)
    elif attempt.profiles.filter(pk__in=ids, tries=tries).update(tries=tries + 1, asked_at=timezone.now()):
        log.warning("the profiles of %s were lost with their evaluator; asking again", attempt)
        dispatch.capture(attempt, sorted({row.role for row in missing}))


def known_baseline(attempt: Attempt) -> AttemptProfile | None:
    """The latest profile of the campaign's baseline that was taken on the attempt's host."""
    found = AttemptProfile.objects.filter(
        attempt__campaign=attempt.campaign_id, role=BASELINE, tool="torch", host=attempt.host
    )
    return found.exclude(profile=None).exclude(attempt=attempt).order_by("-id").first()


def attach(ticket: str) -> None:
    """Take in the traces that lie at the broker under ``ticket``. Called again, it finds nothing, or the same."""
    attempt = Attempt.objects.filter(ticket=ticket).select_related("campaign").first()
    if attempt is None:
        return
    for raw in dispatch.traces_of(ticket):
        try:
            attach_one(attempt, msgspec.msgpack.decode(raw, type=Trace))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            note(attempt, CANDIDATE, f"what the evaluator sent could not be read: {error}")
        dispatch.forget_trace(ticket, raw)


def attach_one(attempt: Attempt, trace: Trace) -> None:
    if trace.problem or not 0 < len(trace.content) <= MAX_TRACE_BYTES:
        note(attempt, trace.role, trace.problem or "the evaluator sent no trace", trace.tool)
        return
    name = name_of(attempt, trace.role, trace.tool)
    try:
        profile, _ = uploads.take(SimpleUploadedFile(name, trace.content), None)
    except uploads.NotTaken as error:
        note(attempt, trace.role, str(error), trace.tool)
        return
    facts = {"profile": profile, "workload": trace.workload[:200], "host": trace.host[:200], "problem": ""}
    facts["trace_sha256"] = kept_for_archives(trace)
    before = attempt.profiles.filter(role=trace.role, tool=trace.tool).values_list("trace_sha256", flat=True).first()
    AttemptProfile.objects.update_or_create(attempt=attempt, role=trace.role, tool=trace.tool, defaults=facts)
    traces.drop_unnamed(before or "")


def name_of(attempt: Attempt, role: str, tool: str) -> str:
    """What a profile of an attempt is called in the list of all profiles."""
    ending = PRODUCTS.get(tool, ".json.gz")
    title = attempt.campaign.title.replace("/", " ")[:120]
    return uploads.display_name(f"{title} · attempt {attempt.number} · {role}, {tool}{ending}")


def kept_for_archives(trace: Trace) -> str:
    """The sha256 under which the trace is kept; empty where it is not: another tool's may hold an environment."""
    if trace.tool != traces.TOOL:
        return ""
    try:
        return traces.keep(trace.content)
    except OSError as error:
        log.warning("a trace is in no archive, since it could not be stored: %s", error)
        return ""


def note(attempt: Attempt, role: str, problem: str, tool: str = "torch") -> None:
    log.warning("%s was not profiled (%s, %s): %s", attempt, role, tool, problem)
    AttemptProfile.objects.update_or_create(attempt=attempt, role=role, tool=tool, defaults={"problem": problem[:2000]})


@dataclass(frozen=True)
class Side:
    """What a page shows of one profile: its link once it can be opened, else why not, in words."""

    role: str
    word: str
    profile: Profile | None = None

    @property
    def ready(self) -> bool:
        return self.profile is not None and self.profile.is_ready()


@dataclass(frozen=True)
class Pair:
    """Baseline and candidate of an attempt; ``compare`` is the page that holds both, where both can be opened.

    ``others`` are the reports of nsys and ncu, where those are installed.
    """

    sides: list[Side]
    compare: str
    others: list[Side]


def pair(attempt: Attempt) -> Pair | None:
    """The profiles of an attempt; None where none was ever asked for."""
    found = list(attempt.profiles.select_related("profile", "attempt__campaign"))
    rows = {row.role: row for row in found if row.tool == "torch"}
    if not rows:
        return None
    others = [side(f"{row.role}, {row.tool}", row) for row in found if row.tool != "torch"]
    baseline = rows.get(BASELINE) or known_baseline(attempt)
    sides = [side(BASELINE, baseline), side(CANDIDATE, rows.get(CANDIDATE))]
    first, second = (s.profile for s in sides)
    compare = ""
    if first is not None and second is not None and all(s.ready for s in sides):
        query = urlencode({"a": str(first.pk), "b": str(second.pk), "range": MEASURED})
        compare = f"{reverse('profile_compare')}?{query}"
    return Pair(sides, compare, others)


def side(role: str, row: AttemptProfile | None) -> Side:
    if row is None:
        return Side(role, "not profiled")
    if row.profile is None and row.problem:
        return Side(role, f"not profiled: {row.problem}")
    if row.profile is None and row.trace_sha256:
        return Side(role, "waiting for import")
    if row.profile is None and row.attempt.campaign.imported_from is not None:
        return Side(role, "deleted, or not in the archive" if row.tool == traces.TOOL else "not in the archive")
    if row.profile is None and row.host:
        return Side(role, "deleted")
    if row.profile is None:
        late = timezone.now() - row.asked_at > PATIENCE
        return Side(role, "waits for a host, for more than an hour" if late else "being taken")
    return Side(role, row.profile.get_state_display(), row.profile)
