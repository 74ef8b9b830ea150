"""The loop of a runner: load, map, run a block of calls. What differs by backend is in ``run_*.py``."""

from __future__ import annotations

import functools
import gc
import os
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from .link import Link, map_memory

TENSOR = dict[str, Any]
"""``{"offset": bytes, "shape": […], "dtype": "float32"}``"""


class Backend(Protocol):
    def load(self, config: dict[str, Any]) -> None:
        """Load the candidate's code."""

    def arguments(self, tensors: list[tuple[int, TENSOR]], axes: list[int]) -> tuple[Any, ...]:
        """The arguments of one call; each tensor is its address and description."""

    def function(self) -> Callable[..., Any]: ...


def describe(error: BaseException) -> dict[str, Any]:
    """The failure as data. Only the end of the traceback: the first lines are this loop's own."""
    lines = traceback.format_exception(error)
    memory = isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "out of memory" in str(error)
    return {"ok": False, "error": "".join(lines)[-4000:], "kind": type(error).__name__, "memory": memory}


def serve(backend: Backend, config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    slots: dict[str, tuple[Any, ...]] = {}
    link.reply({"id": config["hello"], "ok": True})
    while True:
        message, fds = link.receive()
        try:
            answer = handle(backend, link, slots, message, fds)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are failures like any other here
            answer = describe(error)
        link.reply({"id": message["id"], **answer})


def handle(
    backend: Backend, link: Link, slots: dict[str, tuple[Any, ...]], message: dict[str, Any], fds: list[int]
) -> dict[str, Any]:
    match message["do"]:
        case "load":
            backend.load(message)
            gc.collect()
            gc.freeze()
        case "map":
            map_slots(backend, slots, message, fds)
        case "block":
            return block(backend, link, slots, message)
        case "trace":
            return traced(backend, slots, message, fds[0])
        case "end":
            os._exit(0)
    return {"ok": True}


def map_slots(backend: Backend, slots: dict[str, tuple[Any, ...]], message: dict[str, Any], fds: list[int]) -> None:
    """``areas``: size and access of each descriptor; ``slots``: for each, its tensors as [area, description]."""
    bases = [map_memory(fd, area["size"], area["writable"]) for fd, area in zip(fds, message["areas"], strict=True)]
    for name, tensors in message["slots"].items():
        placed = [(bases[area] + tensor["offset"], tensor) for area, tensor in tensors]
        slots[name] = backend.arguments(placed, message["axes"])


def traced(backend: Backend, slots: dict[str, tuple[Any, ...]], message: dict[str, Any], fd: int) -> dict[str, Any]:
    from .trace import trace

    run = backend.function()
    calls = [functools.partial(run, *slots[name]) for name in message["calls"]]
    return {"ok": True, "bytes": trace(calls, message["warm"], lambda: None, fd, message["most_bytes"])}


def block(backend: Backend, link: Link, slots: dict[str, tuple[Any, ...]], message: dict[str, Any]) -> dict[str, Any]:
    """Call once for each slot named. All is looked up before the clock starts."""
    calls = [slots[name] for name in message["calls"]]
    run = backend.function()
    gc.disable()
    link.reply({"id": message["id"], "ok": True, "ready": True})
    word = link.wait_for_go()
    for arguments in calls:
        run(*arguments)
    return {"ok": True, "word": word}
