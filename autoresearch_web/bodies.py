"""How much a request may carry, counted while it comes in.

Django writes a whole body to a temporary file before it looks at it, and trusts ``Content-Length`` for the size: a body sent
in chunks has none, and one sent to a page that takes no file could fill the disk. This stands before Django.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string

from autoresearch_web import host_faults

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)
FORM_BYTES = 1 << 20
"""What stands around a file in a form."""
DRAINED_BYTES = 64 << 20
"""Read and thrown away beyond the limit: a browser that is cut off in the middle shows no answer at all."""


class BoundedBodies:
    """Answers 413 for a body above the limit of its address, and 507 where there is no room to keep it."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = Body(receive, limit_bytes(scope["path"]))
        if body.claims_too_much(scope):
            await body.drain()
        else:
            try:
                await self.app(scope, body.receive, send)
            except OSError as error:
                if body.ended or (found := host_faults.explained(error)) is None:
                    raise
                log.warning("a request could not be kept: %s", error)
                await refuse(scope, send, 507, f"The request could not be kept: {found['error']}.", found["hint"])
        if body.is_too_large:
            said = f"The request has more than {body.limit:,} bytes, which is all that is taken here."
            await refuse(scope, send, 413, said, "Send less, or the file by the form that is made for it.")


class Body:
    """A request's body as it comes in. Above the limit it ends for the application as if the client had gone away."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self.source, self.limit = receive, limit
        self.seen = 0
        self.is_too_large = False
        self.ended = False

    def claims_too_much(self, scope: Scope) -> bool:
        claimed = dict(scope["headers"]).get(b"content-length", b"0")
        self.is_too_large = claimed.isdigit() and (len(claimed) > 18 or int(claimed) > self.limit)
        return self.is_too_large

    async def receive(self) -> Message:
        message = await self.source()
        self.note(message)
        if self.seen > self.limit:
            self.is_too_large = True
            await self.drain()
            return {"type": "http.disconnect"}
        return message

    def note(self, message: Message) -> None:
        self.seen += len(message.get("body", b""))
        self.ended = self.ended or message["type"] == "http.disconnect" or not message.get("more_body", False)

    async def drain(self) -> None:
        while not self.ended and self.seen <= self.limit + DRAINED_BYTES:
            self.note(await self.source())


def limit_bytes(path: str) -> int:
    from campaigns.api.rest import MAX_BODY_BYTES
    from campaigns.archive.container import MAX_TOTAL_BYTES

    if path.startswith("/api/"):
        return MAX_BODY_BYTES
    files = {"/profiles/upload": int(settings.PROFILE_MAX_BYTES), "/campaigns/import": MAX_TOTAL_BYTES}
    return files[path] + FORM_BYTES if path in files else int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


async def refuse(scope: Scope, send: Send, status: int, error: str, hint: str) -> None:
    accept = dict(scope["headers"]).get(b"accept", b"")
    if scope["path"].startswith("/api/") or b"application/json" in accept:
        kind, body = "application/json", json.dumps({"error": error, "hint": hint})
    else:
        kind, body = "text/html; charset=utf-8", render_to_string("refused.html", {"error": error, "hint": hint})
    data = body.encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(data)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
