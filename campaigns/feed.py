"""What an open campaign page is sent: the events after the last one that it has, with the parts of the page that they
change, rendered once for all pages that ask for the same."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.template.loader import render_to_string

from campaigns.models import Attempt, Campaign, Event
from campaigns.presenters import chart_points, review, strip

K = TypeVar("K")
T = TypeVar("T")
LIMIT = 2000
"""Events in one update; a page that missed more asks again."""


@dataclass(frozen=True)
class Update:
    seq: int
    text: str


_cache: OrderedDict[tuple[int, int, int], asyncio.Task[Update | None]] = OrderedDict()
_counts: OrderedDict[tuple[int, int], asyncio.Task[int]] = OrderedDict()


def since(query_string: bytes) -> int:
    """The last event that the page says it has; 0 for nonsense."""
    value = parse_qs(query_string.decode("ascii", "replace")).get("since", ["0"])[0]
    return int(value) if value.isascii() and value.isdigit() and len(value) < 18 else 0


async def exists(campaign_id: int) -> bool:
    return await Campaign.objects.filter(pk=campaign_id).aexists()


async def latest_seq(campaign_id: int) -> int:
    return await Campaign.objects.values_list("event_seq", flat=True).aget(pk=campaign_id)


async def after(campaign_id: int, seq: int, latest: int) -> Update | None:
    """What came after ``seq``, or None. Pages that ask for the same at the same moment share one rendering."""
    if latest <= seq:
        return None
    return await shared(_cache, (campaign_id, seq, latest), lambda: render(campaign_id, seq))


async def waiting(event: tuple[int, int] | None = None) -> int:
    """Kernels that wait for review; pages that were told of the same ``event`` (campaign, seq) share one count."""
    if event is None:
        return await sync_to_async(count_waiting, thread_sensitive=False)()
    return await shared(_counts, event, count_waiting)


async def shared(cache: OrderedDict[K, asyncio.Task[T]], key: K, work: Callable[[], T]) -> T:
    """What ``work`` returns, done once in a thread for all who ask by the same key."""
    if key not in cache:
        cache[key] = asyncio.ensure_future(sync_to_async(by_a_sound_connection, thread_sensitive=False)(work))
        while len(cache) > 256:
            cache.popitem(last=False)
    try:
        return await asyncio.shield(cache[key])
    except Exception:
        cache.pop(key, None)
        raise


def by_a_sound_connection(work: Callable[[], T]) -> T:
    """``work`` after what a request does: a connection that died with the database, or is too old, is not used again."""
    close_old_connections()
    return work()


def count_waiting() -> int:
    return review.waiting().count()


def render(campaign_id: int, seq: int) -> Update | None:
    """One JSON text: ``seq``, the ``events``, ``rows`` (each attempt's, a table body), ``parts`` (swapped in by id),
    chart ``points``."""
    campaign = Campaign.objects.get(pk=campaign_id)
    events = list(Event.objects.filter(campaign_id=campaign_id, seq__gt=seq).order_by("seq")[:LIMIT])
    if not events:
        return None
    ids = {event.attempt_id for event in events if event.attempt_id}
    rows = Attempt.objects.filter(pk__in=ids).defer("report", "files", "rationale")
    attempts = list(rows.prefetch_related("flags").order_by("number"))
    body = {
        "seq": events[-1].seq,
        "events": [{"seq": e.seq, "kind": e.kind, "attempt": e.attempt_id, "at": e.at.timestamp()} for e in events],
        "rows": [render_to_string("campaigns/_row.html", {"attempt": a, "campaign": campaign}) for a in attempts],
        "parts": render_to_string("campaigns/_live.html", strip(campaign)),
        "points": chart_points(a for a in attempts if a.verdict),
        "state": campaign.state,
    }
    return Update(seq=events[-1].seq, text=json.dumps(body))
