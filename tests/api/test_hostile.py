"""What a hostile or broken client sends: a clear 4xx in JSON, never a fault, and nothing that fills memory or disk."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.models import Campaign

from .conftest import Agent, Web
from .test_mcp import call, over_http


@pytest.mark.django_db
@pytest.mark.usefixtures("no_broker")
@pytest.mark.parametrize("agent_name", ["external", "tuner"])
@pytest.mark.parametrize("options", ['{"seed": NaN}', '{"a": "\\ud800"}', '{"a": "' + "x" * 20_000 + '"}'])
def test_options_that_cannot_be_kept_are_refused(agent: Agent, agent_name: str, options: str) -> None:
    body = f'{{"problem": "softmax", "idea": "One pass.", "agent": "{agent_name}", "agent_options": {options}}}'
    answer = agent.client.post("/api/campaigns", body, content_type="application/json")

    assert answer.status_code == 422, answer.content
    assert "options" in answer.json()["error"]
    assert not Campaign.objects.exists()


def chunked(web: Web, path: str, megabytes: int, headers: dict[str, str]) -> tuple[int, bytes]:
    """A body without ``Content-Length``, as much as the server takes."""

    def parts() -> Iterator[bytes]:
        for _ in range(megabytes):
            yield b" " * (1 << 20)

    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    try:
        connection.request("POST", path, parts(), headers, encode_chunked=True)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_body_that_does_not_say_its_size_has_the_same_limit(web: Web, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    status, body = chunked(web, "/api/campaigns/1/attempts", 12, headers)
    assert (status, set(json.loads(body))) == (413, {"error", "hint"})

    status, body = chunked(web, "/profiles/upload", 40, {"Transfer-Encoding": "chunked"})
    assert (status, b"not signed in" in body) == (401, True)

    status, body = chunked(web, "/login", 20, {"Transfer-Encoding": "chunked"})
    assert status == 413
    assert b"all that is taken here" in body


def written_bytes(web: Web) -> int:
    """What the web process has written so far, to whatever."""
    text = Path(f"/proc/{web.processes[-1].pid}/io").read_text()
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])


@pytest.mark.parametrize(
    "path", ["/profiles/upload", "/campaigns/import", "/problems/new", "/context/new", "/api/campaigns/1/attempts"]
)
def test_a_stranger_is_asked_for_a_name_before_anything_is_kept(web: Web, path: str) -> None:
    before = written_bytes(web)
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    connection.putrequest("POST", path)
    for name, value in (("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(200 << 20))):
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for _ in range(200):
            connection.send(b"x" * (1 << 20))
    except ConnectionError:
        pass  # it need not take all of it in order to say no
    answer = connection.getresponse()
    assert answer.status == 401
    assert b"not signed in" in answer.read()
    connection.close()
    assert written_bytes(web) - before < 1 << 20


async def test_mcp_has_the_limits_of_rest(web: Web, token: str) -> None:
    good = {"problem": "softmax", "idea": "One pass."}
    async with over_http(web.url, token) as client:
        for wrong in (
            {"hardware": "../x y"},
            {"title": "x" * 201},
            {"budget_seconds": 10**30},
            {"target_speedup": 1e300},
            {"region": 2**70},
        ):
            result = await client.call_tool("create_campaign", {**good, **wrong})
            assert result.is_error, wrong
            assert next(iter(wrong)) in result.content[0].text
        found = await call(client, "list_campaigns", limit=10**30)
        assert not found["is_error"]
