"""Every answer of the API that is no result is ``{"error", "hint"}``, whoever made it: us, Django or the framework."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from autoresearch_web import host_faults
from campaigns.actions.submit import Refusal

log = logging.getLogger(__name__)
DOCS = "docs/bring-your-own-agent.md and /api/docs tell what there is."
HINTS = {
    400: f"The request could not be read. {DOCS}",
    404: f"There is no such address. {DOCS}",
    405: f"This address takes another method. {DOCS}",
    413: "Send less: files have at most 1 MiB in all.",
    500: "This is a fault of the server; its log says more. Nothing was half written. Try again once.",
}


def answer(status: int, error: str, hint: str, **details: Any) -> JsonResponse:
    body = {"error": error, "hint": hint, **{key: value for key, value in details.items() if value is not None}}
    response = JsonResponse(body, status=status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="autoresearch"'
    if wait_s := details.get("retry_after_s"):
        response["Retry-After"] = str(wait_s)
    return response


def of_refusal(request: HttpRequest, error: Refusal) -> HttpResponse:
    return answer(error.status, error.error, error.hint, attempt=error.attempt, **getattr(error, "details", {}))


def of_validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """The first field that does not fit, by its path, without repeating what was sent."""
    first = error.errors[0]
    where = ".".join(str(part) for part in first.get("loc", ()) if part not in ("body", "data", "path", "query"))
    more = f" ({len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
    said = f"{where}: {first.get('msg', 'does not fit')}{more}" if where else str(first.get("msg", "does not fit"))
    return answer(422, said[:500], "/api/docs has every field with its type and limit.")


def of_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return answer(error.status_code, str(error), HINTS.get(error.status_code, DOCS))


def of_size(request: HttpRequest, error: Exception) -> HttpResponse:
    return answer(413, "The request is too large.", HINTS[413])


def of_fault(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("fault in %s %s", request.method, request.path, exc_info=error)
    return of_refusal(request, of_ours(error))


def of_ours(error: Exception) -> Refusal:
    """A fault here, as an answer: 503 where the host is at fault (a full disk, a database that is held), 500 else."""
    found = host_faults.explained(error)
    if found is None:
        return Refusal("Something went wrong here.", HINTS[500], status=500)
    hint = f"{found['hint'][:1].upper()}{found['hint'][1:]}."
    return Refusal(f"The server cannot do this now: {found['error']}.", hint, status=503)


def install(api: NinjaAPI) -> None:
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        Refusal: of_refusal,
        ValidationError: of_validation,
        HttpError: of_http_error,
        RequestDataTooBig: of_size,
        Exception: of_fault,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


class JsonErrors:
    """Middleware: what Django itself answers below ``/api/`` (no such address, wrong method …) in our form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code < 400 or not request.path.startswith("/api/"):
            return response
        if response.get("Content-Type", "").startswith("application/json"):
            return response
        status = response.status_code
        said = answer(status, HTTPStatus(status).phrase + ".", HINTS.get(status, DOCS))
        if allowed := response.get("Allow"):
            said["Allow"] = allowed
        return said
