"""By the official client, over stdio and HTTP, in both ways that the protocol has of beginning."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.system.conftest import ROOT

TOOLS = {
    "list_campaigns",
    "list_problems",
    "get_task",
    "submit_candidate",
    "wait_for_verdict",
    "get_attempt",
    "list_attempts",
    "get_candidate",
    "get_report",
    "nothing_more",
    "create_campaign",
    "list_profiles",
    "list_findings",
}


@asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=90) as http:
        async with Client(streamable_http_client(f"{url}/mcp/", http_client=http), mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(env: dict[str, str], *words: str, mode: str = "auto") -> AsyncIterator[Client]:
    command = StdioServerParameters(command=sys.executable, args=["manage.py", "mcp", *words], cwd=str(ROOT), env=env)
    async with Client(stdio_client(command), mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments) -> dict:
    """The facts of a tool's result."""
    result = await client.call_tool(tool, arguments)
    facts = json.loads(result.content[0].text)
    return {**facts, "is_error": bool(result.is_error), "blocks": [block.text for block in result.content[1:]]}


async def walk(client: Client) -> None:
    """What an agent does, as far as it goes without an evaluator."""
    tools = await client.list_tools()
    assert {tool.name for tool in tools.tools} == TOOLS
    made = await call(client, "create_campaign", problem="rmsnorm", idea="Read each row once.", budget_attempts=3)
    task = await call(client, "get_task", campaign=made["id"])
    assert task["ideas"][0]["text"] == "Read each row once."
    code = next(block for block in task["blocks"] if block.startswith("incumbent/files/kernel.cpp:"))
    assert "constexpr int LANES = 2;" in code
    assert "⟦data " in code
    text = code.split("⟧", 1)[1].rsplit("⟦", 1)[0].replace("LANES = 2;", "LANES = 8;")
    sent = await call(client, "submit_candidate", campaign=made["id"], files={"kernel.cpp": text}, title="8 lanes")
    assert sent["attempt"] == 1
    again = await call(client, "submit_candidate", campaign=made["id"], files={"kernel.cpp": text}, title="8 lanes")
    assert again["is_error"]
    assert again["attempt"] == 1
    waited = await call(client, "wait_for_verdict", campaign=made["id"], attempt=1, timeout_s=0.5)
    assert (waited["done"], waited["phase"]) == (False, "ready")
    assert waited["title"].startswith("⟦data ")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http(web, token, mode):
    async with over_http(web.url, token, mode) as client:
        await walk(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_stdio(web, mode):
    async with over_stdio(web.env, "--scopes", "read,submit,create", mode=mode) as client:
        await walk(client)


async def test_stdio_with_a_token_has_that_tokens_scopes_and_closes_with_it(web):
    reader = web.token("read")
    async with over_stdio({**web.env, "AUTORESEARCH_TOKEN": reader}) as client:
        refused = await call(client, "create_campaign", problem="rmsnorm", idea="x")
        assert refused["is_error"]
        assert "lacks the scope `create`" in refused["error"]
        web.manage("api_token", "revoke", reader[:12])
        assert "revoked" in (await call(client, "list_campaigns"))["error"]


async def test_stdio_may_be_kept_to_one_campaign(web, token):
    made = [web.ask(token, "/campaigns", {"problem": "softmax", "idea": "x"}).body["id"] for _ in range(2)]
    async with over_stdio(web.env, "--campaign", str(made[0])) as client:
        assert [c["id"] for c in (await call(client, "list_campaigns"))["campaigns"]] == [made[0]]
        assert (await call(client, "get_task", campaign=made[1]))["is_error"]


def post(web, headers: dict[str, str], body: str = "{}", method: str = "POST") -> httpx2.Response:
    return httpx2.request(
        method, f"{web.url}/mcp/", headers={"Content-Type": "application/json", **headers}, content=body
    )


def test_http_wants_a_token(web):
    answer = post(web, {})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert set(answer.json()) == {"error", "hint"}
    assert post(web, {"Authorization": "Bearer arw_wrong"}).status_code == 401


def test_http_takes_nothing_from_another_host_or_origin(web, token):
    good = {"Authorization": f"Bearer {token}"}
    assert post(web, {**good, "Host": "evil.example"}).status_code == 421
    assert post(web, {**good, "Origin": "https://evil.example"}).status_code == 403


def test_http_opens_no_stream(web, token):
    answer = post(web, {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}, method="GET")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"jsonrpc": "2.0"}', "[" * 50_000])
def test_http_survives_nonsense(web, token, body):
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    assert 400 <= post(web, headers, body).status_code < 500
    assert web.ask(token, "/whoami").status == 200
