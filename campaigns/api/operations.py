"""What an agent may ask and do, one function each, for REST and MCP alike. There is none that approves, rejects,
dismisses or steers: those are a person's. Plain data out; refusals are ``ApiError`` or ``Refusal``."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from campaigns import actions, catalog, dispatch, progress, proposing
from campaigns.actions.submit import MAX_FILES, MAX_TEXT_BYTES, Submission, as_usage, nothing_more, submit
from campaigns.context import library
from campaigns.harness.candidate import starts
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import load_problem, read_folder
from campaigns.models import Attempt, Campaign, Scope, State
from profiling.models import Profile, Region

from . import documents
from .caller import ApiError, Caller
from .outside import Outside, outside

log = logging.getLogger(__name__)
PAGE = 100
DEFAULT_RULES = "rules/default"
PAST = 200
"""Past attempts in a task; older ones are asked for by page."""


def whoami(caller: Caller) -> dict[str, Any]:
    return {
        "name": Outside(caller.name),
        "scopes": list(caller.scopes),
        "campaign": caller.campaign,
        "cannot": "approve, reject, dismiss flags or steer: a person does that in the browser",
    }


def list_campaigns(
    caller: Caller, state: str = "", agent: str = "", before: int = 0, limit: int = 20
) -> dict[str, Any]:
    """Newest first. ``before``: only campaigns with a smaller id, for the next page."""
    caller.need(Scope.READ)
    if state and state not in State.values:
        raise ApiError(422, f"There is no state {state[:40]!r}.", f"There are: {', '.join(State.values)}.")
    rows = Campaign.objects.all()
    for field, value in (("state", state), ("agent", agent), ("pk", caller.campaign)):
        rows = rows.filter(**{field: value}) if value else rows
    if before:
        rows = rows.filter(pk__lt=before)
    return {"campaigns": [documents.of_campaign(row) for row in rows.order_by("-pk")[: page(limit)]]}


def get_campaign(caller: Caller, campaign: int) -> dict[str, Any]:
    caller.need(Scope.READ)
    return documents.of_campaign(campaign_for(caller, campaign))


def get_task(caller: Caller, campaign: int) -> dict[str, Any]:
    """All that a proposer may know. Hidden workloads, the reference and seeds are not in it."""
    caller.need(Scope.READ)
    found = campaign_for(caller, campaign)
    problem = load_problem(found.problem_files)
    task = proposing.task_for(next_attempt(found))
    ideas = found.ideas.filter(struck_at=None)
    past = found.attempts.exclude(phase="dropped").select_related("campaign").prefetch_related("reviews")
    shown = list(past.order_by("-number")[:PAST])
    return {
        "campaign": documents.of_campaign(found),
        "problem": {"name": task.problem, "title": Outside(task.title), "summary": Outside(task.summary)},
        "interface": documents.of_interface(problem, found, task.interface),
        "ideas": [{"id": idea.pk, "text": idea.text, "is_next": idea.text == task.idea} for idea in ideas],
        "steering": list(task.steering),
        "rules": task.rules or default_rules(),
        "context": task.context,
        "region": Outside(task.region),
        "readme": Outside(task.readme),
        "lessons": outside(list(task.lessons)),
        "incumbent": documents.of_candidate(task.incumbent, found.incumbent.number if found.incumbent else None),
        "attempts": [documents.of_past(attempt) for attempt in reversed(shown)],
        "attempts_left": max(0, found.budget_attempts - found.attempts.exclude(phase="dropped").count()),
        "limits": {"files": MAX_FILES, "text_bytes": MAX_TEXT_BYTES},
    }


def submit_candidate(
    caller: Caller,
    campaign: int,
    files: Mapping[str, str],
    title: str,
    rationale: str = "",
    backend: str = "",
    idea: int | None = None,
    usage: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    caller.need(Scope.SUBMIT)
    found = campaign_for(caller, campaign)
    new = Submission(files=files, title=title, rationale=rationale, backend=backend, idea=idea, usage=as_usage(usage))
    attempt = submit(found, new, caller.name)
    note = told(lambda: dispatch.advance(found.pk))
    return {"attempt": attempt.number, "phase": attempt.phase, "note": note, "url": attempt.get_absolute_url()}


def get_attempt(caller: Caller, campaign: int, attempt: int) -> dict[str, Any]:
    caller.need(Scope.READ)
    return documents.of_attempt(attempt_for(caller, campaign, attempt))


def list_attempts(caller: Caller, campaign: int, after: int = 0, limit: int = 50) -> dict[str, Any]:
    """Oldest first, from the one after number ``after``."""
    caller.need(Scope.READ)
    rows = campaign_for(caller, campaign).attempts.filter(number__gt=after).select_related("campaign")
    shown = rows.prefetch_related("reviews").order_by("number")[: page(limit)]
    return {"attempts": [documents.of_past(row) for row in shown]}


def get_candidate(caller: Caller, campaign: int, attempt: int) -> dict[str, Any]:
    """The files of an attempt; of 0, the start kernel's."""
    caller.need(Scope.READ)
    if attempt == 0:
        return documents.of_candidate(campaign_for(caller, campaign).start_candidate(), None)
    found = attempt_for(caller, campaign, attempt)
    return documents.of_candidate(found.candidate(), found.number)


def get_report(caller: Caller, campaign: int, attempt: int) -> dict[str, Any]:
    caller.need(Scope.READ)
    found = attempt_for(caller, campaign, attempt)
    report = found.parsed_report()
    if report is None:
        hint = "Wait for its verdict first." if found.phase not in ("judged", "dropped") else "It ended without one."
        raise ApiError(404, f"Attempt {attempt} has no report ({found.phase}).", hint)
    return documents.of_report(found, report)


def give_up(caller: Caller, campaign: int, reason: str) -> dict[str, Any]:
    """Nothing more to offer, and why. The campaign ends once all that is under way is judged."""
    caller.need(Scope.SUBMIT)
    found = campaign_for(caller, campaign)
    nothing_more(found, reason, caller.name)
    note = told(lambda: dispatch.advance(found.pk))
    return {"campaign": found.pk, "state": reload(found).state, "note": note}


def list_problems(caller: Caller) -> dict[str, Any]:
    caller.need(Scope.READ)
    return {"problems": [problem for name in catalog.all() if (problem := of_problem(name))]}


def of_problem(name: str) -> dict[str, Any] | None:
    try:
        problem = load_problem(read_folder(catalog.find(name)))
    except ProblemError as error:
        log.warning("problem %s cannot be read: %s", name, error)
        return None
    return {
        "name": problem.name,
        "title": Outside(problem.title),
        "summary": Outside(problem.summary),
        "backends": list(starts(problem)),
        "start_kernels": list(problem.start),
        "baselines": list(problem.baselines),
    }


def create_campaign(caller: Caller, start: bool = True, region: int | None = None, **wanted: Any) -> dict[str, Any]:
    """A campaign on a problem of the catalogue, by default one that waits for candidates, and started."""
    caller.need(Scope.CREATE)
    if wanted["problem"] not in catalog.all():
        raise ApiError(
            422, f"There is no problem {wanted['problem'][:80]!r}.", f"There are: {', '.join(catalog.all())}."
        )
    if wanted.get("agent", "external") == "replay":
        raise ApiError(422, "A token cannot read folders of this machine.", "Use another agent than `replay`.")
    marked = Region.objects.select_related("profile").filter(pk=region).first() if region is not None else None
    if region is not None and marked is None:
        raise ApiError(422, f"There is no region {region}.", "list_findings of a profile lists its marked regions.")
    campaign = acted(lambda: actions.create(actions.NewCampaign(**wanted, region=marked), caller.person))
    note = told(lambda: acted(lambda: actions.start(campaign, caller.person))) if start else ""
    return {**documents.of_campaign(reload(campaign)), "note": note}


def list_profiles(caller: Caller, limit: int = 50) -> dict[str, Any]:
    caller.need(Scope.READ)
    if caller.campaign is not None:
        region = Campaign.objects.select_related("region__profile").get(pk=caller.campaign).region
        return {"profiles": [documents.of_profile(region.profile)] if region else []}
    return {"profiles": [documents.of_profile(row) for row in Profile.objects.all()[: page(limit)]]}


def list_findings(caller: Caller, profile: str) -> dict[str, Any]:
    """What stands out in a profile, the dearest first, and the regions that people marked in it."""
    caller.need(Scope.READ)
    found = profile_for(caller, profile)
    regions = [documents.of_region(region) for region in found.regions.select_related("profile")]
    return {**documents.of_profile(found), "findings": outside(found.findings), "regions": regions}


def campaign_for(caller: Caller, campaign: int) -> Campaign:
    """One that the caller reaches. To a token of another campaign it does not exist."""
    if caller.campaign in (None, campaign) and 0 < campaign < 2**63:
        found = Campaign.objects.select_related("incumbent", "region").filter(pk=campaign).first()
        if found is not None:
            return found
    raise ApiError(404, f"There is no campaign {campaign}.", "GET /api/campaigns (list_campaigns) lists them.")


def attempt_for(caller: Caller, campaign: int, attempt: int) -> Attempt:
    found = campaign_for(caller, campaign)
    row = found.attempts.select_related("campaign").filter(number=attempt).first() if 0 < attempt < 2**31 else None
    if row is None:
        hint = f"Its attempts are numbered 1 to {found.attempt_seq}." if found.attempt_seq else "It has none yet."
        raise ApiError(404, f"Campaign {campaign} has no attempt {attempt}.", hint)
    return row


def profile_for(caller: Caller, profile: str) -> Profile:
    try:
        rows = Profile.objects.filter(pk=uuid.UUID(profile))
    except ValueError:
        rows = Profile.objects.none()
    if caller.campaign is not None:
        rows = rows.filter(regions__campaign__pk=caller.campaign).distinct()
    found = rows.first()
    if found is None:
        raise ApiError(404, f"There is no profile {profile[:60]!r}.", "GET /api/profiles (list_profiles) lists them.")
    return found


def next_attempt(campaign: Campaign) -> Attempt:
    """The attempt that would be next, not written: what a task is made for."""
    idea = progress.next_idea(campaign)
    return Attempt(campaign=campaign, number=campaign.attempt_seq + 1, idea=idea, backend=campaign.backend)


def default_rules() -> str:
    """The rules that hold where a campaign has none of its own."""
    card = library.current()[0].get(DEFAULT_RULES)
    return card.body if card else ""


def told(tell: Callable[[], object]) -> str:
    """Tell the workers, after all is written. Where the broker is away the answer says so; the watch does it later."""
    try:
        tell()
    except (OperationalError, RedisError, ConnectionError) as error:
        log.warning("the broker does not answer: %s", error)
        return "Saved, but the broker does not answer: it goes on by itself once `manage.py up` runs."
    return ""


def acted(act: Callable[[], Any]) -> Any:
    """A person's refusal of the web as an answer of the API."""
    try:
        return act()
    except actions.ActionError as error:
        if hasattr(error, "status"):
            raise
        raise ApiError(422, str(error), "Correct that and ask again.") from error


def reload(campaign: Campaign) -> Campaign:
    campaign.refresh_from_db()
    return campaign


def page(limit: int) -> int:
    return max(1, min(limit, PAGE))
