"""Runs asynchronous work for a synchronous caller that must be able to give up within a second.

Reading a stream blocks; a blocked thread cannot be interrupted, a task of an event loop can, and cancelling it closes
the connection. So the loop lives in a thread of its own, and the caller's thread passes text on and asks
``should_stop`` (which looks at the database, and so has to stay where its connection is).
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from .conversation_types import Say

T = TypeVar("T")
TICK_S = 0.1
"""Text is passed on this often at most; an event loop a chunk would cost more than the text."""
ASK_S = 0.4
"""How often ``should_stop`` is asked."""
GRACE_S = 0.5


class Stopped(Exception):
    """``should_stop`` said yes, and the work was cancelled."""


class Courier:
    """Use as a context manager: one event loop in a thread of its own."""

    def __enter__(self) -> Courier:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="courier", daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(GRACE_S)
        if not self.thread.is_alive():
            self.loop.close()

    def run(
        self,
        work: Callable[[Say], Coroutine[Any, Any, T]],
        on_text: Say = lambda text: None,
        should_stop: Callable[[], bool] = lambda: False,
        within_s: float | None = None,
    ) -> T:
        """What ``work(say)`` returns. Raises ``Stopped``, ``TimeoutError`` after ``within_s``, or what it raises."""
        said: queue.SimpleQueue[str] = queue.SimpleQueue()
        tasks: list[asyncio.Task[Any]] = []

        async def working() -> T:
            tasks.append(asyncio.current_task())  # type: ignore[arg-type]
            return await work(said.put)

        future = asyncio.run_coroutine_threadsafe(working(), self.loop)
        end = time.monotonic() + within_s if within_s is not None else None
        asked = time.monotonic()
        try:
            while not done(future, TICK_S):
                pass_on(said, on_text)
                if time.monotonic() - asked >= ASK_S:
                    asked = time.monotonic()
                    if should_stop():
                        raise Stopped
                if end is not None and time.monotonic() > end:
                    raise TimeoutError
            return future.result()
        finally:
            if not future.done():  # the task is cancelled, not the future: that is done once the connection is closed
                self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
                done(future, GRACE_S)
            pass_on(said, on_text)


def done(future: Future[Any], within_s: float) -> bool:
    try:
        future.exception(within_s)
    except TimeoutError:
        return future.done()
    except CancelledError:
        return True
    return True


def pass_on(said: queue.SimpleQueue[str], on_text: Say) -> None:
    pieces = []
    while not said.empty():
        pieces.append(said.get_nowait())
    if pieces:
        on_text("".join(pieces))
