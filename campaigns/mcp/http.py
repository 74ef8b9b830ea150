"""MCP over streamable HTTP at ``/mcp``, beside the pages in one ASGI application.

Without sessions: a request carries its token and all else, so a restart of the web or a second process loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.http import JsonResponse
from django.http.request import split_domain_port, validate_host

from campaigns.actions.submit import Refusal
from campaigns.api import errors, limits
from campaigns.api.caller import ApiError, Caller, caller_of

if TYPE_CHECKING:
    from .sessions import Manager

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
CALLER = "autoresearch.caller"
PATHS = ("/mcp", "/mcp/")


class McpOverHttp:
    """Takes what is below ``/mcp``; all else goes to ``otherwise``."""

    def __init__(self, otherwise: App) -> None:
        self.otherwise = otherwise
        self.running: dict[asyncio.AbstractEventLoop, Manager] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self.otherwise(scope, receive, send)
            return
        try:
            scope[CALLER] = await database_sync_to_async(admit, thread_sensitive=False)(scope)
        except Refusal as refusal:
            await reply(send, errors.of_refusal(None, refusal))  # type: ignore[arg-type]
            return
        manager = await self.manager()
        await manager.sessions.handle_request(scope, receive, send)

    async def manager(self) -> Manager:
        """Loading the SDK takes a second of processor: not before somebody asks, and then the pages go on meanwhile."""
        loop = asyncio.get_running_loop()
        if loop not in self.running:
            sessions = await asyncio.to_thread(import_module, "campaigns.mcp.sessions")
            if loop not in self.running:  # another request may have waited for the same
                self.running[loop] = sessions.Manager()
        await self.running[loop].ready.wait()
        return self.running[loop]


def admit(scope: Scope) -> Caller:
    """The caller behind the request's token. Raises ``Refusal`` for a wrong host, origin, method or token."""
    headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
    check_host(headers.get("host", ""), headers.get("origin"))
    if scope["method"] != "POST":
        raise ApiError(405, "This address takes POST only.", "It keeps no session and opens no stream of its own.")
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    try:
        caller = caller_of(secret.strip() if scheme.lower() == "bearer" else "")
    except ApiError:
        limits.take(f"address:{(scope.get('client') or [''])[0]}")
        raise
    limits.take(caller.key)
    return caller


def check_host(host: str, origin: str | None) -> None:
    """Only under the names that the pages have (``ALLOWED_HOSTS``); a browser's page from elsewhere is turned away."""
    if not allowed(host):
        raise ApiError(421, "This host name is not served here.", "Set ALLOWED_HOSTS.")
    if origin and not allowed(urlsplit(origin).netloc):
        raise ApiError(403, "Requests from that origin are not taken.", "Set ALLOWED_HOSTS.")


def allowed(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


async def reply(send: Send, response: JsonResponse) -> None:
    headers = [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in response.items()]
    if response.status_code == 405:
        headers.append((b"allow", b"POST"))
    headers.append((b"content-length", str(len(response.content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
