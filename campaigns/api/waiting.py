"""Wait for a verdict without asking the database all the time: the campaign's own messages say when to look."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from campaigns import notify
from campaigns.models import Attempt

from . import operations
from .caller import Caller

log = logging.getLogger(__name__)
MAX_WAIT_S = 60.0
LOOK_S = 2.0
"""How long a lost message can hold an answer back."""
DONE = ("judged", "dropped")


def look(campaign: int, number: int) -> bool:
    return Attempt.objects.filter(campaign_id=campaign, number=number, phase__in=DONE).exists()


async def verdict(caller: Caller, campaign: int, attempt: int, timeout_s: float) -> dict[str, Any]:
    """The attempt once it is judged or dropped, or as it is after ``timeout_s`` (at most 60): ``done`` tells which."""
    ask = database_sync_to_async(operations.get_attempt, thread_sensitive=False)
    answer = await ask(caller, campaign, attempt)
    if answer["done"]:
        return answer
    await until_done(campaign, attempt, min(max(timeout_s, 0.0), MAX_WAIT_S))
    return await ask(caller, campaign, attempt)


async def until_done(campaign: int, number: int, timeout_s: float) -> None:
    done = database_sync_to_async(look, thread_sensitive=False)
    end = time.monotonic() + timeout_s
    async with Messages(campaign) as messages:
        while not await done(campaign, number):
            left = end - time.monotonic()
            if left <= 0:
                return
            await messages.wait(min(left, LOOK_S))


class Messages:
    """The campaign's group at the channel layer. Where the broker is away, waiting is only sleeping."""

    def __init__(self, campaign: int) -> None:
        self.group = notify.group(campaign)
        self.layer = get_channel_layer()
        self.channel = ""
        self.pending: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Messages:
        try:
            self.channel = await self.layer.new_channel()
            await self.layer.group_add(self.group, self.channel)
        except Exception as error:
            self.lose(error)
        return self

    async def wait(self, timeout_s: float) -> None:
        """Until the next message, or the time is over. A receive that is cancelled would unsubscribe: it is kept."""
        if not self.channel:
            await asyncio.sleep(timeout_s)
            return
        self.pending = self.pending or asyncio.ensure_future(self.layer.receive(self.channel))
        await asyncio.wait({self.pending}, timeout=timeout_s)
        if self.pending.done():
            if error := self.pending.exception():
                self.lose(error)
            self.pending = None

    def lose(self, error: BaseException) -> None:
        log.warning("no messages while waiting (%s); looking every %.0f s", error, LOOK_S)
        self.channel = ""

    async def __aexit__(self, *error: object) -> None:
        if self.pending is not None:
            self.pending.cancel()
            await asyncio.wait({self.pending})
        if self.channel:
            with contextlib.suppress(Exception):  # the receive that was cancelled may have unsubscribed already
                await self.layer.group_discard(self.group, self.channel)
