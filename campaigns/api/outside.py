"""Text that came from outside (names, rationales, logs, sources), marked as such until it leaves.

REST gives it as a plain JSON string: a program reads that. To a model, over MCP, it is given between two marks with a
number that was drawn for this one answer, so that no text can close its own fence.
"""

from __future__ import annotations

import secrets
from typing import Any

from campaigns.presenters.text import visible


class Outside(str):
    """A string that the product did not write itself."""

    __slots__ = ()


class Source(Outside):
    """Source text: kept character by character, since an agent edits it."""

    __slots__ = ()


def new_mark() -> str:
    return secrets.token_hex(6)


def fence(text: str, mark: str) -> str:
    """The text between its marks. Characters that are not drawn are spelled out, but in sources."""
    shown = str(text) if isinstance(text, Source) else visible(text)
    return f"⟦data {mark}⟧{shown}⟦end {mark}⟧"


def fenced(value: Any, mark: str) -> Any:
    """The same structure with every ``Outside`` string between marks."""
    if isinstance(value, Outside):
        return fence(value, mark) if value else ""
    if isinstance(value, dict):
        return {plain_key(key): fenced(item, mark) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fenced(item, mark) for item in value]
    return value


def plain_key(key: Any) -> Any:
    return str(key) if isinstance(key, Outside) else key


def outside(value: Any) -> Any:
    """Mark every string in a structure whose shape is ours and whose words are not."""
    if isinstance(value, str):
        return value if isinstance(value, Outside) else Outside(value)
    if isinstance(value, dict):
        return {key: outside(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [outside(item) for item in value]
    return value
