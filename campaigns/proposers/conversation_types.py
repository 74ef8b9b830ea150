"""What goes back and forth between us and a model, in no vendor's words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Stop = Literal["end", "tools", "length", "refusal", "pause"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class ToolSpec:
    """``schema`` is a JSON schema of an object."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, which need not be JSON."""


@dataclass(frozen=True)
class ToolResult:
    call: ToolCall
    text: str
    is_error: bool = False


@dataclass
class Meter:
    """What the server has counted so far in one request; filled as the answer streams: a cut loses nothing."""

    model: str = ""
    request_id: str = ""
    input_tokens: int | None = None
    """All of them, cached ones included."""
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Turn:
    """One answer of a model. ``raw`` is what has to be sent back as the model's part of the dialogue."""

    text: str
    calls: list[ToolCall]
    stop: Stop
    raw: Any


@dataclass
class Dialogue:
    """``stable`` is the same for all proposals of a campaign (a vendor may cache it), ``first`` is this proposal's."""

    stable: str
    first: str
    tools: list[ToolSpec]
    turns: list[Turn | list[ToolResult] | str] = field(default_factory=list)
    """After ``first``: answers, the results of their tool calls, and what we said between."""

    def bytes_since(self, number: int) -> int:
        """Bytes of text that entered the dialogue after its first ``number`` turns, of ours only."""
        total = 0
        for turn in self.turns[number:]:
            if isinstance(turn, str):
                total += len(turn.encode())
            elif isinstance(turn, list):
                total += sum(len(result.text.encode()) for result in turn)
        return total


class RequestFailed(Exception):
    """A request that brought no answer. ``transient``: the same may succeed, after ``wait_s`` if the server says so."""

    def __init__(self, message: str, *, transient: bool, wait_s: float | None = None, no_tools: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.wait_s = wait_s
        self.no_tools = no_tools
        """The server does not take tools; the same question without them may do."""


def as_object(text: str) -> dict[str, Any]:
    """The arguments as they must be sent back: an object, empty where the model wrote none."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Model(Protocol):
    """A vendor's protocol. Lives in one event loop."""

    async def turn(self, dialogue: Dialogue, *, max_tokens: int, meter: Meter, say: Say) -> Turn:
        """The next answer. SHALL call ``say`` with text as it comes, fill ``meter`` with what the server counts, and
        raise nothing but ``RequestFailed`` (and cancellation)."""

    async def close(self) -> None: ...
