"""Long answers in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

T = TypeVar("T", str, bytes)


def in_pieces(request: HttpRequest, pieces: Iterable[T]) -> Iterable[T] | AsyncIterator[T]:
    """For a ``StreamingHttpResponse``: each piece is sent when it is made.

    Under ASGI Django makes all of a plain iterator, and holds it in memory, before it sends the first byte.
    """
    return one_by_one(pieces) if isinstance(request, ASGIRequest) else pieces


async def one_by_one(pieces: Iterable[T]) -> AsyncIterator[T]:
    iterator = iter(pieces)
    following = sync_to_async(lambda: next(iterator, None))
    while (piece := await following()) is not None:
        yield piece
