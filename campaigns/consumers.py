"""The WebSockets: who may listen, from which event on. What is sent comes from ``feed``."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from campaigns import feed, notify
from campaigns.models import Campaign

PAUSE_S = 0.5
"""Between two messages of news to one page."""
SIGNED_OUT, GONE = 4403, 4404
"""Codes with which a socket is closed for good. It is accepted first: a refused one tells a page nothing."""


class SignedIn(AsyncJsonWebsocketConsumer):
    """A socket of somebody who is signed in, until that session signs out, in whichever of its tabs."""

    groups_heard: tuple[str, ...] = ()

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.refuse(SIGNED_OUT)
            return
        await self.hear(notify.session_group(self.scope["session"].session_key or ""))
        await self.begin()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """What a page sends goes Channels' way, which first closes old database connections: a hop to the one thread that
        all sockets share. What other processes tell comes to every page at once and skips it: ``feed`` reads the database
        once for all of them, by connections that it looks after itself."""
        if message["type"].startswith("websocket."):
            await super().dispatch(message)
        else:
            await getattr(self, get_handler_name(message))(message)

    async def hear(self, *names: str) -> None:
        for name in names:
            await self.channel_layer.group_add(name, self.channel_name)
        self.groups_heard += names

    async def begin(self) -> None:
        """Accept, or refuse, and say what is there."""
        raise NotImplementedError

    async def refuse(self, code: int) -> None:
        await self.accept()
        await self.close(code=code)

    async def disconnect(self, code: int) -> None:
        for name in self.groups_heard:
            await self.channel_layer.group_discard(name, self.channel_name)

    async def signed_out(self, message: dict[str, Any]) -> None:
        await self.close(code=SIGNED_OUT)


class PageConsumer(SignedIn):
    """``/ws/page``, the one socket of a page that shows nothing live: how many kernels wait for review, when it changes."""

    async def begin(self) -> None:
        await self.hear(notify.REVIEW_GROUP)
        await self.accept()
        await self.count()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """A page woke up and asks how things stand."""
        await self.count()

    async def queue_moved(self, message: dict[str, Any]) -> None:
        await self.count((message["campaign"], message["seq"]))

    async def count(self, event: tuple[int, int] | None = None) -> None:
        await self.send_json({"waiting": await feed.waiting(event)})


class CampaignConsumer(PageConsumer):
    """``/ws/campaigns/<id>?since=<seq>``, the one socket of a campaign's page: every event after ``since``, in order, none
    lost, none twice, and what every page hears."""

    async def begin(self) -> None:
        self.campaign_id = int(self.scope["url_route"]["kwargs"]["campaign_id"])
        self.sending = asyncio.Lock()
        if not await feed.exists(self.campaign_id):
            await self.refuse(GONE)
            return
        self.last_seq = feed.since(self.scope["query_string"])
        await self.hear(notify.group(self.campaign_id))
        await super().begin()
        await self.catch_up()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """The page asks for what it may have missed; anything else that it says is ignored."""
        await self.count()
        await self.catch_up()

    async def count(self, event: tuple[int, int] | None = None) -> None:
        """Whoever reads a campaign's events finds them in every message of this socket: here there are none."""
        await self.send_json({"waiting": await feed.waiting(event), "events": []})

    async def there_is_more(self, message: dict[str, Any]) -> None:
        await self.catch_up(message["seq"])

    async def text(self, message: dict[str, Any]) -> None:
        await self.send_json({"text": message["chunk"], "attempt": message["attempt"], "events": []})

    async def catch_up(self, latest: int | None = None) -> None:
        async with self.sending:
            try:
                latest = await feed.latest_seq(self.campaign_id) if latest is None else latest
                while (update := await feed.after(self.campaign_id, self.last_seq, latest)) is not None:
                    self.last_seq = update.seq
                    await self.send(text_data=update.text)
            except Campaign.DoesNotExist:
                await self.close(code=GONE)


class NewsConsumer(PageConsumer):
    """``/ws/home``, Home's one socket: at most twice a second, that something changed somewhere, with what every page hears.
    The last change is always told: one that comes during the pause is told after it."""

    pending: asyncio.Task[None] | None = None
    changed = False

    async def begin(self) -> None:
        await self.hear(notify.HOME_GROUP)
        await super().begin()

    async def disconnect(self, code: int) -> None:
        await super().disconnect(code)
        if self.pending is not None:
            self.pending.cancel()

    async def there_is_more(self, message: dict[str, Any]) -> None:
        self.changed = True
        if self.pending is None or self.pending.done():
            self.pending = asyncio.create_task(self.say())

    async def say(self) -> None:
        while self.changed:
            self.changed = False
            await self.send_json({"changed": True})
            await asyncio.sleep(PAUSE_S)
