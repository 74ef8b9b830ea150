"""Tell open pages that there is more. The database is the truth: a message that is lost costs nothing but time.

Celery tasks and views are synchronous. ``async_to_sync(group_send)`` opens a new Redis connection for every message
(500 a second, against 11,600 from one loop), so all messages of a process leave from one event loop in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid: int | None = None


def group(campaign_id: int) -> str:
    return f"campaign.{campaign_id}"


HOME_GROUP = "home"
REVIEW_GROUP = "review"
"""Every open page: told only when what waits for review may have changed, which few events do."""


def session_group(session_key: str) -> str:
    """All open pages of one signed-in browser. A hash: the key itself would sign in whoever reads it at the broker."""
    return f"session.{hashlib.sha256(session_key.encode()).hexdigest()[:32]}"


def _sender() -> asyncio.AbstractEventLoop:
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid():  # a forked worker must not use its parent's loop
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="notify", daemon=True).start()
    return _loop


async def _send(name: str, message: dict[str, object]) -> None:
    layer = get_channel_layer()
    try:
        await layer.group_send(name, message)
    except Exception:
        try:  # after a broker restart the first send raises, then all is well again
            await layer.group_send(name, message)
        except Exception as error:
            log.warning("could not tell open pages: %s; they catch up at their next look", error)


def there_is_more(campaign_id: int, seq: int, queue_moved: bool = False) -> None:
    """Say that the campaign has events up to ``seq``, and to every page whether one of them moved the review queue.
    Never raises, never waits."""
    message: dict[str, object] = {"type": "there.is.more", "campaign": campaign_id, "seq": seq}
    loop = _sender()
    for name in (group(campaign_id), HOME_GROUP):
        asyncio.run_coroutine_threadsafe(_send(name, message), loop)
    if queue_moved:
        asyncio.run_coroutine_threadsafe(_send(REVIEW_GROUP, {**message, "type": "queue.moved"}), loop)


def home_changed() -> None:
    """Something that Home shows is another, and no campaign's event says so."""
    asyncio.run_coroutine_threadsafe(_send(HOME_GROUP, {"type": "there.is.more"}), _sender())


def signed_out(session_key: str) -> None:
    """The pages that the session has open hear nothing more."""
    asyncio.run_coroutine_threadsafe(_send(session_group(session_key), {"type": "signed.out"}), _sender())


def text(campaign_id: int, attempt_number: int, chunk: str) -> None:
    """A piece of a model's text as it comes. It is kept nowhere: the finished proposal is."""
    message: dict[str, object] = {"type": "text", "attempt": attempt_number, "chunk": chunk}
    asyncio.run_coroutine_threadsafe(_send(group(campaign_id), message), _sender())
