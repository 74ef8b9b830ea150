"""The REST API. Each address names one function of ``operations``; ``/api/docs`` shows all of them."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import NinjaAPI, Query, Status, Swagger
from ninja.security import HttpBearer

from . import errors, limits, operations, schemas, waiting
from .caller import ApiError, Caller, caller_of

MAX_BODY_BYTES = 8 << 20
"""Six bytes a character is the most that JSON makes of 1 MiB of text, and some room."""
DESCRIPTION = """Bring your own agent: read a campaign's task, submit candidates, wait for their verdicts.

`Authorization: Bearer arw_…`; tokens are made at /tokens/ or by `manage.py api_token create`. No token approves
anything: a person does, in the browser. Every error is `{"error", "hint"}`."""


class Bearer(HttpBearer):
    """The caller behind the token, counted. Works in both kinds of view."""

    async def authenticate(self, request: HttpRequest, token: str) -> Caller:
        return await sync_to_async(self.admit)(request, token)

    async def __call__(self, request: HttpRequest) -> Caller:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        return await self.authenticate(request, secret.strip() if scheme.lower() == "bearer" else "")

    def admit(self, request: HttpRequest, secret: str) -> Caller:
        try:
            caller = caller_of(secret)
        except ApiError:
            limits.take(f"address:{request.META.get('REMOTE_ADDR', '')}")
            raise
        limits.take(caller.key)
        return caller


api = NinjaAPI(
    title="Autoresearch",
    version="1",
    description=DESCRIPTION,
    auth=Bearer(),
    urls_namespace="api",
    # The validator's badge would ask a server elsewhere.
    docs=Swagger(settings={"validatorUrl": None, "persistAuthorization": False}),
)
errors.install(api)
REFUSED = dict.fromkeys((401, 403, 404, 409, 413, 422, 429), schemas.ErrorOut)
ANSWER: dict[int, Any] = {200: dict[str, Any], **REFUSED}


def caller(request: HttpRequest) -> Caller:
    found: Caller = request.auth  # type: ignore[attr-defined]
    return found


@api.get("/whoami", response=ANSWER, tags=["token"])
def whoami(request: HttpRequest) -> dict[str, Any]:
    """The token's name, scopes and reach."""
    return operations.whoami(caller(request))


@api.get("/problems", response=ANSWER, tags=["campaigns"])
def list_problems(request: HttpRequest) -> dict[str, Any]:
    """The catalogue: what a campaign can be about, with its backends and baselines."""
    return operations.list_problems(caller(request))


@api.get("/campaigns", response=ANSWER, tags=["campaigns"])
def list_campaigns(
    request: HttpRequest, state: str = "", agent: str = "", before: int = Query(0, ge=0, lt=2**63), limit: int = 20
) -> dict[str, Any]:
    """Newest first. `agent=external&state=running` are those that wait for candidates."""
    return operations.list_campaigns(caller(request), state=state, agent=agent, before=before, limit=limit)


@api.post("/campaigns", response={201: dict[str, Any], **REFUSED}, tags=["campaigns"])
def create_campaign(request: HttpRequest, body: schemas.CampaignIn) -> Status[dict[str, Any]]:
    """Create a campaign, and start it unless `start` is false. Scope `create`."""
    return Status(201, operations.create_campaign(caller(request), **body.dict()))


@api.get("/campaigns/{int:campaign}", response=ANSWER, tags=["campaigns"])
def get_campaign(request: HttpRequest, campaign: int) -> dict[str, Any]:
    """State, budget and best so far."""
    return operations.get_campaign(caller(request), campaign)


@api.get("/campaigns/{int:campaign}/task", response=ANSWER, tags=["candidates"])
def get_task(request: HttpRequest, campaign: int) -> dict[str, Any]:
    """All that a proposer may know: problem, ideas, rules, context, incumbent with its files, past attempts."""
    return operations.get_task(caller(request), campaign)


@api.post("/campaigns/{int:campaign}/attempts", response={201: dict[str, Any], **REFUSED}, tags=["candidates"])
def submit_candidate(request: HttpRequest, campaign: int, body: schemas.CandidateIn) -> Status[dict[str, Any]]:
    """Submit a candidate. Scope `submit`. Answers at once with the attempt's number; then ask for its verdict."""
    return Status(201, operations.submit_candidate(caller(request), campaign, **body.dict()))


@api.get("/campaigns/{int:campaign}/attempts", response=ANSWER, tags=["candidates"])
def list_attempts(request: HttpRequest, campaign: int, after: int = Query(0, ge=0), limit: int = 50) -> dict[str, Any]:
    """Past attempts in their order, from the one after number `after`."""
    return operations.list_attempts(caller(request), campaign, after=after, limit=limit)


@api.get("/campaigns/{int:campaign}/attempts/{int:attempt}", response=ANSWER, tags=["candidates"])
def get_attempt(request: HttpRequest, campaign: int, attempt: int) -> dict[str, Any]:
    """Phase, verdict, speed-up with its interval, flags, and what a person decided."""
    return operations.get_attempt(caller(request), campaign, attempt)


@api.get("/campaigns/{int:campaign}/attempts/{int:attempt}/verdict", response=ANSWER, tags=["candidates"])
async def wait_for_verdict(
    request: HttpRequest, campaign: int, attempt: int, timeout_s: float = Query(30.0, ge=0, le=waiting.MAX_WAIT_S)
) -> dict[str, Any]:
    """Waits up to `timeout_s` seconds (at most 60). `done` is false where it is still under way: ask again."""
    return await waiting.verdict(caller(request), campaign, attempt, timeout_s)


@api.get("/campaigns/{int:campaign}/attempts/{int:attempt}/report", response=ANSWER, tags=["candidates"])
def get_report(request: HttpRequest, campaign: int, attempt: int) -> dict[str, Any]:
    """The evidence: stages, visible workloads, hidden ones as one aggregate, findings, build log."""
    return operations.get_report(caller(request), campaign, attempt)


@api.get("/campaigns/{int:campaign}/attempts/{int:attempt}/candidate", response=ANSWER, tags=["candidates"])
def get_candidate(request: HttpRequest, campaign: int, attempt: int) -> dict[str, Any]:
    """The files of an attempt, with the tunable parameters that they declare; attempt 0 is the start kernel."""
    return operations.get_candidate(caller(request), campaign, attempt)


@api.post("/campaigns/{int:campaign}/nothing-more", response=ANSWER, tags=["candidates"])
def nothing_more(request: HttpRequest, campaign: int, body: schemas.ReasonIn) -> dict[str, Any]:
    """Say that there is nothing more to gain, and why. Scope `submit`. The campaign ends after the last verdict."""
    return operations.give_up(caller(request), campaign, body.reason)


@api.get("/profiles", response=ANSWER, tags=["profiles"])
def list_profiles(request: HttpRequest, limit: int = 50) -> dict[str, Any]:
    """The captures that were uploaded, newest first."""
    return operations.list_profiles(caller(request), limit=limit)


@api.get("/profiles/{profile}/findings", response=ANSWER, tags=["profiles"])
def list_findings(request: HttpRequest, profile: str) -> dict[str, Any]:
    """What stands out in a profile, and the regions that people marked."""
    return operations.list_findings(caller(request), profile)
