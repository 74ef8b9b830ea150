"""How often one caller may ask, counted at the broker for all web processes; without a broker, in this process."""

from __future__ import annotations

import threading
import time

import redis
from django.conf import settings

from campaigns import dispatch

from .caller import ApiError

WINDOW_S = 60
_counts: dict[str, int] = {}
_lock = threading.Lock()


def take(key: str, limit: int | None = None) -> None:
    """Count one request. Raises ``ApiError`` 429 above ``limit`` (``API_REQUESTS_PER_MINUTE``) in this minute."""
    limit = settings.API_REQUESTS_PER_MINUTE if limit is None else limit
    now = time.time()
    slot = f"api:{key}:{int(now // WINDOW_S)}"
    if count(slot) > limit:
        wait_s = int(WINDOW_S - now % WINDOW_S) + 1
        hint = f"Wait {wait_s} s. The verdict call waits by itself: ask it once with timeout_s=60 instead of often."
        raise ApiError(429, f"More than {limit} requests in this minute.", hint, retry_after_s=wait_s)


def count(slot: str) -> int:
    try:
        pipe = dispatch.broker().pipeline()
        pipe.incr(slot)
        pipe.expire(slot, 2 * WINDOW_S)
        return int(pipe.execute()[0])
    except (redis.RedisError, OSError):
        return count_here(slot)


def count_here(slot: str) -> int:
    with _lock:
        if len(_counts) > 10_000:
            _counts.clear()
        _counts[slot] = _counts.get(slot, 0) + 1
        return _counts[slot]
