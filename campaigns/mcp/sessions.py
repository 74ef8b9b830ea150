"""The SDK's server behind ``/mcp``. Apart from ``http``, since the SDK takes a second of processor to load."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from campaigns.api.caller import Caller

from .http import CALLER
from .server import build

MAX_BODY_BYTES = 8 << 20


class Manager:
    """The SDK's session manager, running for as long as the event loop does."""

    def __init__(self) -> None:
        server = build(caller_of_request)
        self.sessions = StreamableHTTPSessionManager(
            server._lowlevel_server, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        self.ready = asyncio.Event()
        # In a context of its own: this task outlives the request that happened to be first.
        self.task = asyncio.get_running_loop().create_task(self.run(), context=contextvars.Context())

    async def run(self) -> None:
        async with self.sessions.run():
            self.ready.set()
            await asyncio.Event().wait()


async def caller_of_request(ctx: Context[Any, Any]) -> Caller:
    request = ctx.request_context.request
    assert request is not None
    found: Caller = request.scope[CALLER]
    return found
