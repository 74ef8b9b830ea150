"""The WebSockets: who may listen, from which event on. What is sent comes from ``feed``."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.generic.websocket import AsyncJsonWebsocketConsumer

from campaigns import feed, notify

PAUSE_S = 0.5
"""Between two messages of news to one page."""


class CampaignConsumer(AsyncJsonWebsocketConsumer):
    """``/ws/campaigns/<id>?since=<seq>``: every event after ``since``, in order, none lost, none twice."""

    async def connect(self) -> None:
        self.campaign_id = int(self.scope["url_route"]["kwargs"]["campaign_id"])
        self.group = notify.group(self.campaign_id)
        self.sending = asyncio.Lock()
        if not self.scope["user"].is_authenticated or not await feed.exists(self.campaign_id):
            await self.close(code=4403)
            return
        self.last_seq = feed.since(self.scope["query_string"])
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.accept()
        await self.catch_up(await feed.latest_seq(self.campaign_id))

    async def disconnect(self, code: int) -> None:
        if hasattr(self, "last_seq"):
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """The page asks for what it may have missed; anything else that it says is ignored."""
        await self.catch_up(await feed.latest_seq(self.campaign_id))

    async def there_is_more(self, message: dict[str, Any]) -> None:
        await self.catch_up(message["seq"])

    async def text(self, message: dict[str, Any]) -> None:
        await self.send_json({"text": message["chunk"], "attempt": message["attempt"]})

    async def catch_up(self, latest: int) -> None:
        async with self.sending:
            while (update := await feed.after(self.campaign_id, self.last_seq, latest)) is not None:
                self.last_seq = update.seq
                await self.send(text_data=update.text)


class NewsConsumer(AsyncJsonWebsocketConsumer):
    """``/ws/home``, which every page has open: how many kernels wait for review, and, at most twice a second, that something
    changed somewhere. The last change is always told: one that comes during the pause is told after it."""

    async def connect(self) -> None:
        self.pending: asyncio.Task[None] | None = None
        self.latest: tuple[int, int] | None = None
        if not self.scope["user"].is_authenticated:
            await self.close(code=4403)
            return
        await self.channel_layer.group_add(notify.HOME_GROUP, self.channel_name)
        await self.accept()
        await self.send_json({"waiting": await feed.waiting()})

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard(notify.HOME_GROUP, self.channel_name)
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
