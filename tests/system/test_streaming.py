from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import async_to_sync
from django.test import AsyncRequestFactory, RequestFactory

from autoresearch_web.streaming import in_pieces


def test_under_asgi_a_piece_leaves_before_the_next_is_made() -> None:
    made: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for piece in (b"one", b"two", b"three"):
            made.append(piece)
            yield piece

    async def first_and_all() -> tuple[int, list[bytes]]:
        sent = in_pieces(AsyncRequestFactory().get("/"), pieces())
        assert isinstance(sent, AsyncIterator)
        first = await anext(sent)
        count = len(made)
        return count, [first, *[piece async for piece in sent]]

    assert async_to_sync(first_and_all)() == (1, [b"one", b"two", b"three"])
    assert list(in_pieces(RequestFactory().get("/"), [b"one"])) == [b"one"]
