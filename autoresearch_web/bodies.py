"""How much a request may carry, counted while it comes in.

Django writes a whole body to a temporary file before it looks at it, and trusts ``Content-Length`` for the size: a body sent
in chunks has none, one sent to a page that takes no file could fill the disk, and so could a stranger, who is asked for a
name only after all of it has come. This stands before Django.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.template.loader import render_to_string

from autoresearch_web import access, host_faults
from profiling.words import size

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)
FORM_BYTES = 1 << 20
"""What stands around a file in a form."""
STRANGER_BYTES = 64 << 10
"""Enough to sign in with. More is taken from those only who are signed in, or send a valid token."""
RESERVE_BYTES = 256 << 20
"""What an upload leaves free: on a full disk nobody can sign in, delete anything, or go on."""
GIVEN_UP_S = 45.0
"""After a large body garbage is looked for, once its form has surely been taken apart: an upload that its browser gave up
meanwhile is closed by nobody, and lay on the disk for as long as nothing else came."""
DRAINED_BYTES = 64 << 20
"""Read and thrown away beyond the limit: a browser that is cut off in the middle shows no answer at all."""


class BoundedBodies:
    """Answers 401 for a large body of somebody unknown, before it is read; 413 for one above the limit of its address; and
    507 where there is no room to keep it."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_stranger = may_be_large(scope) and not await is_known(scope)
        body = Body(receive, STRANGER_BYTES if is_stranger else limit_bytes(scope["path"]))
        if body.claims_too_much(scope):
            if headers_of(scope).get(b"expect", b"").lower() != b"100-continue":
                await body.drain()
        elif has_no_room(scope):
            await body.drain()
            said = f"There is room for {size(room_bytes())} in the data folder, and {size(claimed_bytes(scope))} came."
            await refuse(scope, send, 507, said, "Make room there, then send it again. Nothing was kept.")
        else:
            try:
                await self.app(scope, body.receive, send)
            except OSError as error:
                if body.ended or (found := host_faults.explained(error)) is None:
                    raise
                log.warning("a request could not be kept: %s", error)
                await refuse(scope, send, 507, f"The request could not be kept: {found['error']}.", found["hint"])
            finally:
                if body.seen > settings.FILE_UPLOAD_MAX_MEMORY_SIZE:
                    asyncio.get_running_loop().call_later(GIVEN_UP_S, gc.collect)
        if body.is_too_large and is_stranger and not scope["path"].startswith("/login"):
            hint = "Send a valid token." if is_api(scope["path"]) else "Sign in, then send it again."
            await refuse(scope, send, 401, "You are not signed in, so what you sent was not taken.", hint)
        elif body.is_too_large:
            said = f"The request has more than {body.limit:,} bytes, which is all that is taken here."
            await refuse(scope, send, 413, said, "Send less, or the file by the form that is made for it.")


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def is_api(path: str) -> bool:
    return path.startswith("/api/")


def may_be_large(scope: Scope) -> bool:
    """Whether the headers announce more than ``STRANGER_BYTES``, or a body of unknown length."""
    headers = headers_of(scope)
    claimed = headers.get(b"content-length", b"")
    return b"transfer-encoding" in headers or (
        claimed.isdigit() and (len(claimed) > 18 or int(claimed) > STRANGER_BYTES)
    )


def claimed_bytes(scope: Scope) -> int:
    claimed = headers_of(scope).get(b"content-length", b"")
    return int(claimed) if claimed.isdigit() and len(claimed) <= 18 else 0


def room_bytes() -> int:
    """The largest upload for which there is room: it lies on the disk twice, as it came and out of its form."""
    return max(0, shutil.disk_usage(settings.FILE_UPLOAD_TEMP_DIR).free - RESERVE_BYTES) // 2


def has_no_room(scope: Scope) -> bool:
    claimed = claimed_bytes(scope)
    return claimed > settings.FILE_UPLOAD_MAX_MEMORY_SIZE and claimed > room_bytes()


class TemporaryUpload(TemporaryFileUploadHandler):
    """Django's, whose file stays where writing it fails: half an upload on a disk that it has just filled."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        try:
            return super().receive_data_chunk(raw_data, start)
        except OSError:
            with contextlib.suppress(OSError):
                self.upload_interrupted()
            raise


async def is_known(scope: Scope) -> bool:
    """Whether the headers name a person who is signed in or, below ``/api/``, hold a valid token."""
    look: Callable[[Scope], bool] = has_token if is_api(scope["path"]) else access.is_signed_in
    known: bool = await database_sync_to_async(look, thread_sensitive=False)(scope)
    return known


def has_token(scope: Scope) -> bool:
    from campaigns.models import ApiToken

    scheme, _, secret = headers_of(scope).get(b"authorization", b"").decode("latin-1").partition(" ")
    return scheme.lower() == "bearer" and ApiToken.find(secret.strip()) is not None


class Body:
    """A request's body as it comes in. Above the limit it ends for the application as if the client had gone away."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self.source, self.limit = receive, limit
        self.seen = 0
        self.is_too_large = False
        self.ended = False

    def claims_too_much(self, scope: Scope) -> bool:
        claimed = headers_of(scope).get(b"content-length", b"0")
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

    if is_api(path):
        return MAX_BODY_BYTES
    files = {"/profiles/upload": int(settings.PROFILE_MAX_BYTES), "/campaigns/import": MAX_TOTAL_BYTES}
    return files[path] + FORM_BYTES if path in files else int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


async def refuse(scope: Scope, send: Send, status: int, error: str, hint: str) -> None:
    accept = headers_of(scope).get(b"accept", b"")
    if is_api(scope["path"]) or b"application/json" in accept:
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
