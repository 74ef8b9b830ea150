"""A candidate from outside becomes an attempt that waits for an evaluator. Nothing else is taken on its word.

The caller tells the workers afterwards (``dispatch.advance``); a word that is lost is made good by the watch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from campaigns import memory, money, progress
from campaigns.context import library
from campaigns.harness.candidate import ENTRY, SUFFIXES, entry_path, normalised_sha256, tunables
from campaigns.harness.errors import CandidateError
from campaigns.harness.request import CandidateSource
from campaigns.loop import goal_reached
from campaigns.models import Attempt, Campaign, Event, Gate, Idea, Phase, State, Verdict
from campaigns.proposers import registry
from campaigns.proposers.base import Usage

from .errors import ActionError, some

MAX_FILES = 64
MAX_TEXT_BYTES = 1 << 20
MAX_LINE_CHARS = 2000
"""A person reads the diff; a longer line is no line. It also bounds the work of reading declared parameters."""
MAX_RATIONALE_CHARS = 20_000
MAX_WAITING = 32
"""Candidates of one campaign that may wait for an evaluator at once."""
_PATH = re.compile(r"(?!\.)[A-Za-z0-9_.\-]{1,80}(/(?!\.)[A-Za-z0-9_.\-]{1,80}){0,7}\Z")


class Refusal(ActionError):
    """``error`` says what was wrong, ``hint`` what to do. ``status`` is HTTP's word for what is at fault: 409 the
    campaign's state, 422 the submission. ``attempt``: the number of the attempt that it is about, if any."""

    def __init__(self, error: str, hint: str, *, status: int = 422, attempt: int | None = None) -> None:
        super().__init__(f"{error} {hint}")
        self.error, self.hint, self.status, self.attempt = error, hint, status, attempt


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One candidate as it came in."""

    files: Mapping[str, str]
    title: str
    rationale: str = ""
    backend: str = ""
    """Empty: the campaign's."""
    idea: int | None = None
    """Which idea it serves; None: the one whose turn it is."""
    usage: Usage | None = None
    """What the agent says that its model cost."""


def submit(campaign: Campaign, new: Submission, by: str) -> Attempt:
    """The attempt, ready for an evaluator. Raises ``Refusal``, and then nothing was written.

    Numbers are given under the campaign's lock: no gap, no double, and never more attempts than the budget.
    """
    source = checked_candidate(new, campaign.backend)
    title = " ".join(new.title.replace("\x00", "").split())
    if not title:
        raise Refusal("The title is empty.", "Say in one line what was tried.")
    sha256 = normalised_sha256(source)
    cards = [library.version_of(card) for card in library.chosen_for(campaign)]
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
        check_open(campaign)
        check_new(campaign, source, sha256)
        idea = wanted_idea(campaign, new.idea)
        Campaign.objects.filter(pk=campaign.pk).update(attempt_seq=F("attempt_seq") + 1, exhausted="")
        attempt = Attempt.objects.create(
            campaign=campaign,
            number=campaign.attempt_seq + 1,
            idea=idea,
            phase=Phase.READY,
            title=title[:300],
            rationale=new.rationale.replace("\x00", "")[:MAX_RATIONALE_CHARS],
            backend=source.backend,
            files=dict(source.files),
            parameters={t.name: t.value for t in tunables(source)},
            source_sha256=sha256,
            canonical_sha256=memory.canonical_sha256(source),
            structure_sha256=memory.structure_sha256(source),
            proposer=f"external: {by}"[:100],
            usage=asdict(new.usage) if new.usage else {},
            proposed_at=timezone.now(),
        )
        attempt.cards.set(cards)
        if new.usage:
            money.note_reported(attempt, new.usage)
        Event.record(campaign.pk, "attempt.proposed", attempt, by=by)
    return attempt


def nothing_more(campaign: Campaign, reason: str, by: str) -> None:
    """The agent gives up, and says why: a reason is a result, too. What is under way is still judged."""
    reason = " ".join(reason.replace("\x00", "").split())[:500]
    if not reason:
        raise Refusal("The reason is empty.", "Say why nothing more can be gained, with numbers where there are some.")
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
        check_external(campaign)
        if campaign.state not in (State.QUEUED, State.RUNNING, State.PAUSED):
            raise Refusal(f"The campaign is {campaign.state}.", "There is nothing to end.", status=409)
        Campaign.objects.filter(pk=campaign.pk).update(exhausted=reason)
        Event.record(campaign.pk, "campaign.exhausted", reason=reason, by=by)


def checked_candidate(new: Submission, campaign_backend: str) -> CandidateSource:
    """The candidate, when it can be read as one. Whether it is right or fast is not looked at here."""
    backend = new.backend or campaign_backend
    if backend not in ENTRY:
        raise Refusal(f"There is no backend {backend!r}.", f"There are: {', '.join(ENTRY)}.")
    if backend != campaign_backend:
        hint = f"Leave `backend` out and submit {campaign_backend}, or start a campaign for {backend}."
        raise Refusal(f"This campaign asks for {campaign_backend}, not {backend}.", hint)
    check_sizes(new.files)
    for path, text in new.files.items():
        check_path(path, new.files)
        check_text(path, text)
    source = CandidateSource(backend=backend, files=dict(new.files))
    try:
        entry_path(source)
        tunables(source)
    except CandidateError as error:
        raise Refusal(f"The candidate cannot be read: {error}", "Correct the files and submit again.") from None
    return source


def check_sizes(files: Mapping[str, str]) -> None:
    if not files:
        raise Refusal("There are no files.", '`files` maps a relative path to its text, such as {"kernel.cpp": "…"}.')
    if len(files) > MAX_FILES:
        raise Refusal(
            f"There are {len(files)} files; at most {MAX_FILES} are taken.", "Submit only what the kernel needs."
        )
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in files.values())
    if size > MAX_TEXT_BYTES:
        hint = "Submit source text only; no data, no binaries, no vendored libraries."
        raise Refusal(f"The files have {size:,} bytes; at most {MAX_TEXT_BYTES:,} are taken.", hint)


def check_path(path: str, files: Mapping[str, str]) -> None:
    if not _PATH.match(path):
        hint = "A path is relative: at most 8 names of letters, digits, '_', '-' and '.', none beginning with '.'."
        raise Refusal(f"{path[:200]!r} is no path of a source file.", hint)
    if not any(path.endswith(suffix) for suffix in SUFFIXES):
        raise Refusal(f"{path!r} is no source file.", f"Sources end in {', '.join(sorted(SUFFIXES))}.")
    if any(other.startswith(f"{path}/") for other in files):
        raise Refusal(f"{path!r} is a file and a folder at once.", "Rename one of them.")


def check_text(path: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(f"{path}: has half of a surrogate pair.", "Send the text as valid Unicode.") from None
    if "\x00" in text:
        raise Refusal(f"{path}: has a NUL character.", "Only source text is taken.")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE_CHARS:
            hint = "A person reads the diff: break the line."
            raise Refusal(f"{path}:{number}: has {len(line):,} characters; {MAX_LINE_CHARS:,} is the limit.", hint)


def check_external(campaign: Campaign) -> None:
    if registry.proposes(campaign.agent):
        hint = "Create a campaign with the agent `external` for candidates of your own."
        raise Refusal(f"This campaign's agent is `{campaign.agent}`, which proposes by itself.", hint, status=409)


def check_open(campaign: Campaign) -> None:
    """Whether a further attempt may be begun now. Asked under the campaign's lock."""
    check_external(campaign)
    if campaign.state not in (State.QUEUED, State.RUNNING):
        hints = {
            State.DRAFT: "A person has yet to start it.",
            State.PAUSED: "A person paused it; try again once it is resumed.",
        }
        hint = hints.get(State(campaign.state), "It takes no more candidates: start another campaign.")
        raise Refusal(f"The campaign is {campaign.state}.", hint, status=409)
    now = progress.situation(campaign)
    if reason := goal_reached(now):
        raise Refusal(f"The campaign is at its end: {reason}.", "Ask for its results, or start another.", status=409)
    if now.made >= now.budget_attempts:
        error = (
            f"The budget of {now.budget_attempts} attempts is spent: {now.judged} judged, {now.in_flight} under way."
        )
        raise Refusal(error, "Wait for the last verdicts.", status=409)
    if now.gate == Gate.PERSON and now.waiting_for_review:
        kept = some(now.waiting_for_review, "kept kernel", "waits", "wait")
        error = f"{kept} for a person, and this campaign goes on only after that."
        raise Refusal(error, "Tell the person, and submit again after the review.", status=409)
    if now.ready >= MAX_WAITING:
        raise Refusal(
            f"{now.ready} candidates wait for an evaluator.", "Wait for a verdict before the next one.", status=409
        )


def check_new(campaign: Campaign, source: CandidateSource, sha256: str) -> None:
    """Refuses the same program once more, before a second of an evaluator is spent. Comments do not count."""
    same = (
        campaign.attempts.filter(source_sha256=sha256)
        .exclude(verdict=Verdict.NO_MEASUREMENT)
        .exclude(phase=Phase.DROPPED)
    )
    if (first := same.order_by("number").first()) is not None:
        outcome = first.get_verdict_display() if first.verdict else first.get_phase_display()
        hint = f"Look at attempt {first.number}, and try something else."
        raise Refusal(f"This is attempt {first.number} again ({outcome}).", hint, status=409, attempt=first.number)
    if sha256 == normalised_sha256(campaign.start_candidate()):
        raise Refusal("This is the start kernel itself.", "Change something first.", status=409)
    if refused := memory.refusal(campaign, source):
        raise Refusal(f"Not measured: {refused}", "Change the program itself, and submit again.", status=409)


def wanted_idea(campaign: Campaign, idea: int | None) -> Idea | None:
    if idea is None:
        return progress.next_idea(campaign)
    found = campaign.ideas.filter(pk=idea, struck_at=None).first()
    if found is None:
        open_ideas = campaign.ideas.filter(struck_at=None).values_list("pk", flat=True)
        there_are = ", ".join(str(pk) for pk in open_ideas) or "none"
        hint = f"There are: {there_are}. Leave it out to take the next in turn."
        raise Refusal(f"The campaign has no open idea {idea}.", hint)
    return found


def as_usage(values: Mapping[str, Any] | None) -> Usage | None:
    """What an agent says of its model's cost. Raises ``Refusal`` for what cannot be."""
    if not values:
        return None
    try:
        usage = Usage(**values)
    except TypeError as error:
        raise Refusal(
            f"`usage` cannot be read: {error}.", "It has model, input_tokens, output_tokens and a few more."
        ) from None
    counts = (
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.output_tokens,
        usage.cache_write_tokens,
        usage.requests,
    )
    if any(not 0 <= count < 1e12 for count in counts) or not 0 <= (usage.cost_usd or 0) < 1e6:
        raise Refusal("`usage` has a number that cannot be.", "Tokens and costs are 0 or more.")
    if usage.cached_input_tokens > usage.input_tokens:
        raise Refusal(
            "`usage` has more cached tokens than input tokens.",
            "input_tokens counts the whole prompt, cached part included.",
        )
    return usage
