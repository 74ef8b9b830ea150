"""The WebSockets: who may listen, from which event on. What is sent comes from ``feed``."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.generic.websocket import AsyncJsonWebsocketConsumer

from campaigns import feed, notify
from campaigns.models import Campaign

PAUSE_S = 0.5
"""Between two messages of news to one page."""
SIGNED_OUT, GONE = 4403, 4404
"""Codes with which a socket is closed for good. It is accepted first: a refused one tells a page nothing."""


class SignedIn(AsyncJsonWebsocketConsumer):
    """A socket of somebody who is signed in, until that session signs out, in whichever of its tabs."""

    group = ""

    async def connect(self) -> None:
        self.session_group = ""
        if not self.scope["user"].is_authenticated:
            await self.refuse(SIGNED_OUT)
            return
        self.session_group = notify.session_group(self.scope["session"].session_key or "")
        await self.channel_layer.group_add(self.session_group, self.channel_name)
        await self.begin()

    async def begin(self) -> None:
        """Accept, or refuse, and say what is there."""
        raise NotImplementedError

    async def refuse(self, code: int) -> None:
        await self.accept()
        await self.close(code=code)

    async def disconnect(self, code: int) -> None:
        for name in (self.group, self.session_group):
            if name:
                await self.channel_layer.group_discard(name, self.channel_name)

    async def signed_out(self, message: dict[str, Any]) -> None:
        await self.close(code=SIGNED_OUT)


class CampaignConsumer(SignedIn):
    """``/ws/campaigns/<id>?since=<seq>``: every event after ``since``, in order, none lost, none twice."""

    async def begin(self) -> None:
        self.campaign_id = int(self.scope["url_route"]["kwargs"]["campaign_id"])
        self.sending = asyncio.Lock()
        if not await feed.exists(self.campaign_id):
            await self.refuse(GONE)
            return
        self.last_seq = feed.since(self.scope["query_string"])
        self.group = notify.group(self.campaign_id)
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.accept()
        await self.catch_up()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """The page asks for what it may have missed; anything else that it says is ignored."""
        await self.catch_up()

    async def there_is_more(self, message: dict[str, Any]) -> None:
        await self.catch_up(message["seq"])

    async def text(self, message: dict[str, Any]) -> None:
        await self.send_json({"text": message["chunk"], "attempt": message["attempt"]})

    async def catch_up(self, latest: int | None = None) -> None:
        async with self.sending:
            try:
                latest = await feed.latest_seq(self.campaign_id) if latest is None else latest
                while (update := await feed.after(self.campaign_id, self.last_seq, latest)) is not None:
                    self.last_seq = update.seq
                    await self.send(text_data=update.text)
            except Campaign.DoesNotExist:
                await self.close(code=GONE)


class NewsConsumer(SignedIn):
    """``/ws/home``, which every page has open: how many kernels wait for review, and, at most twice a second, that something
    changed somewhere. The last change is always told: one that comes during the pause is told after it."""

    group = notify.HOME_GROUP
    pending: asyncio.Task[None] | None = None
    latest: tuple[int, int] | None = None

    async def begin(self) -> None:
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.accept()
        await self.send_json({"waiting": await feed.waiting()})

    async def disconnect(self, code: int) -> None:
        await super().disconnect(code)
        if self.pending is not None:
            self.pending.cancel()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """A page woke up and asks how things stand."""
        await self.send_json({"waiting": await feed.waiting()})

    async def there_is_more(self, message: dict[str, Any]) -> None:
        self.latest = message["campaign"], message["seq"]
        if self.pending is None or self.pending.done():
            self.pending = asyncio.create_task(self.say())

    async def say(self) -> None:
        while self.latest is not None:
            event, self.latest = self.latest, None
            await self.send_json({"changed": True, "waiting": await feed.waiting(event)})
            await asyncio.sleep(PAUSE_S)
