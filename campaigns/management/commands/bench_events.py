from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import Any

import websockets
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import BaseCommand, CommandError, CommandParser

from autoresearch_web.local.stack import running
from campaigns.models import Attempt, Campaign, Event, Phase


class Command(BaseCommand):
    help = "Measure how long an event takes from its commit to every one of N open pages. Wants `manage.py up` running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pages", type=int, nargs="+", default=[20, 200])
        parser.add_argument("--events", type=int, default=100)
        parser.add_argument("--per-second", type=float, default=5.0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        url = (running() or {}).get("url")
        if not url:
            raise CommandError("Nothing runs for this data folder. Start `manage.py up` first.")
        bench = Bench(url, options["events"], options["per_second"])
        try:
            results = [asyncio.run(bench.run(pages)) for pages in options["pages"]]
        finally:
            bench.clean_up()
        if options["json"]:
            self.stdout.write(json.dumps(results))
            return
        for r in results:
            self.stdout.write(
                f"{r['pages']:>4} pages, {r['events']} events: median {r['median_ms']:.1f} ms, p95 {r['p95_ms']:.1f} ms, "
                f"worst {r['worst_ms']:.1f} ms; {r['received']} received, {r['lost']} lost, {r['doubled']} twice"
            )


class Bench:
    """A campaign of its own with one attempt, whose events are written by this process and received by real sockets."""

    def __init__(self, url: str, events: int, per_second: float) -> None:
        self.url, self.events, self.per_second = url, events, per_second
        self.user = get_user_model().objects.get_or_create(username="bench-events")[0]
        self.session = SessionStore()
        self.session[SESSION_KEY] = str(self.user.pk)
        self.session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        self.session[HASH_SESSION_KEY] = self.user.get_session_auth_hash()
        self.session.save()
        self.campaign = Campaign.objects.create(
            title="bench_events", problem="rmsnorm", problem_files={}, problem_sha256="", backend="cpp", start_files={},
            baseline="eager", agent="replay", created_by=self.user,
        )  # fmt: skip
        self.attempt = Attempt.objects.create(campaign=self.campaign, number=1, title="bench", phase=Phase.DROPPED)

    def clean_up(self) -> None:
        self.campaign.delete()
        self.session.delete()
        self.user.delete()

    async def run(self, pages: int) -> dict[str, Any]:
        committed: dict[int, float] = {}
        arrivals: list[tuple[int, float]] = []
        since = (await Campaign.objects.aget(pk=self.campaign.pk)).event_seq
        sockets = [await self.open(since) for _ in range(pages)]
        listeners = [asyncio.create_task(self.listen(socket, arrivals)) for socket in sockets]
        for _ in range(self.events):
            event = await asyncio.to_thread(Event.record, self.campaign.pk, "bench", self.attempt)
            committed[event.seq] = time.perf_counter()
            await asyncio.sleep(1 / self.per_second)
        await asyncio.sleep(1)
        for task in listeners:
            task.cancel()
        await asyncio.gather(*listeners, *(socket.close() for socket in sockets), return_exceptions=True)
        late_ms = sorted(max(0.0, at - committed[seq]) * 1e3 for seq, at in arrivals)
        wanted = pages * self.events
        return {
            "pages": pages,
            "events": self.events,
            "received": len(late_ms),
            "lost": max(0, wanted - len(late_ms)),
            "doubled": max(0, len(late_ms) - wanted),
            "median_ms": statistics.median(late_ms),
            "p95_ms": late_ms[int(0.95 * len(late_ms))],
            "worst_ms": late_ms[-1],
        }

    async def open(self, since: int) -> websockets.ClientConnection:
        address = f"{self.url.replace('http', 'ws', 1)}/ws/campaigns/{self.campaign.pk}?since={since}"
        cookie = f"{settings.SESSION_COOKIE_NAME}={self.session.session_key}"
        return await websockets.connect(address, additional_headers={"Cookie": cookie}, origin=self.url)  # type: ignore[arg-type]

    async def listen(self, socket: websockets.ClientConnection, arrivals: list[tuple[int, float]]) -> None:
        async for text in socket:
            now = time.perf_counter()
            arrivals += [(event["seq"], now) for event in json.loads(text).get("events", [])]
