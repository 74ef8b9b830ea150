"""What an open page hears: every event once, in order, however often its socket drops."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from http.cookiejar import CookieJar

import pytest
import websockets

from tests.system.conftest import Product, quick_problem

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def signed_in(product: Product) -> str:
    """The session cookie of somebody who used a sign-in link."""
    link = product.manage("login_link", "--user", "listener").stdout.strip()
    jar = CookieJar()
    urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open(link).read()
    return "; ".join(f"{c.name}={c.value}" for c in jar)


def address(product: Product, campaign: int, since: int | str) -> str:
    return f"ws://localhost:{product.port}/ws/campaigns/{campaign}?since={since}"


async def hear(product: Product, campaign: int, since: int | str, signed_in: str, until_seq: int) -> list[int]:
    heard: list[int] = []
    headers = {"Cookie": signed_in}
    origin = f"http://localhost:{product.port}"
    async with websockets.connect(
        address(product, campaign, since), additional_headers=headers, origin=origin
    ) as socket:
        while not heard or heard[-1] < until_seq:
            heard += [event["seq"] for event in json.loads(await asyncio.wait_for(socket.recv(), 90))["events"]]
    return heard


@pytest.fixture(scope="module")
def campaign(product: Product) -> int:
    words = ("--problem", quick_problem(product.home), "--idea", "fewer passes", "--attempts", "2", "--json")
    return int(json.loads(product.manage("run_campaign", *words).stdout)["campaign"])


@pytest.fixture(scope="module")
def last(product: Product, campaign: int) -> int:
    return int(product.rows("SELECT event_seq FROM campaigns_campaign WHERE id = ?", campaign)[0][0])


def test_a_page_that_was_away_gets_all_that_it_missed_and_nothing_twice(product, campaign, last, signed_in):
    first = asyncio.run(hear(product, campaign, 0, signed_in, last))
    assert first == list(range(1, last + 1))
    rest = asyncio.run(hear(product, campaign, last - 3, signed_in, last))
    assert rest == [last - 2, last - 1, last]


@pytest.mark.parametrize("since", ["x", "-1", "99999999999999999999999", "٣"])
def test_nonsense_for_since_is_taken_as_nothing_seen(product, campaign, last, signed_in, since):
    from urllib.parse import quote

    heard = asyncio.run(hear(product, campaign, quote(since), signed_in, last))
    assert heard[0] == 1


def test_a_stranger_hears_nothing(product, campaign):
    async def try_it() -> None:
        origin = f"http://localhost:{product.port}"
        async with websockets.connect(address(product, campaign, 0), origin=origin) as socket:
            await asyncio.wait_for(socket.recv(), 5)

    with pytest.raises(websockets.exceptions.WebSocketException):
        asyncio.run(try_it())


def test_a_page_of_another_site_hears_nothing(product, campaign, signed_in):
    async def try_it() -> None:
        headers = {"Cookie": signed_in}
        async with websockets.connect(
            address(product, campaign, 0), additional_headers=headers, origin="http://evil.example"
        ) as socket:
            await asyncio.wait_for(socket.recv(), 5)

    with pytest.raises(websockets.exceptions.WebSocketException):
        asyncio.run(try_it())


def test_a_sign_in_link_works_once(product):
    link = product.manage("login_link", "--user", "once").stdout.strip()
    assert re.search(r"/login\?token=", link)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    assert opener.open(link).status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open(link)
