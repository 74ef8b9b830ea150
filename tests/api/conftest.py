"""A web process with its broker, and no workers: enough for all that does not need a verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from autoresearch_web.local import broker
from campaigns.models import ApiToken
from tests.factories import person
from tests.system.conftest import ROOT, free_port, until


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]


def lowered(headers: Any) -> dict[str, str]:
    return {key.lower(): value for key, value in headers.items()}


def ask(url: str, token: str, path: str, body: Any = None, method: str | None = None) -> Answer:
    """One request to the REST API of a running server."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(f"{url}/api{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            return Answer(reply.status, json.loads(reply.read()), lowered(reply.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, json.loads(error.read()), lowered(error.headers))


class Web:
    """uvicorn and a broker as processes of their own, in a data folder of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        keep = {k: v for k, v in os.environ.items() if k not in ("REDIS_URL", "DATABASE_URL")}
        self.env = {**keep, "AUTORESEARCH_HOME": str(home), "API_REQUESTS_PER_MINUTE": "300"}
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        socket = self.home / "valkey.sock"
        self.begin(broker.argv(str(socket), str(self.home)))
        assert broker.answers(f"unix://{socket}", 10)
        self.manage("migrate", "-v0")
        self.begin([sys.executable, "-m", "uvicorn", "autoresearch_web.asgi:application", "--port", str(self.port)])
        until(self.answers, 30, "the web answers")

    def begin(self, argv: list[str]) -> None:
        log = (self.home / "web.log").open("ab")
        self.processes.append(subprocess.Popen(argv, cwd=ROOT, env=self.env, stdout=log, stderr=log))

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as reply:
                return reply.status == 200
        except OSError:
            return False

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)

    def manage(self, *words: str) -> str:
        argv = [sys.executable, "manage.py", *words]
        return subprocess.run(
            argv, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def token(self, scopes: str = "read,submit,create", *words: str) -> str:
        return self.manage("api_token", "create", "test", "--scopes", scopes, *words).strip()

    def ask(self, token: str, path: str, body: Any = None, method: str | None = None) -> Answer:
        return ask(self.url, token, path, body, method)


@pytest.fixture(scope="package")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    made = Web(tmp_path_factory.mktemp("web"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="package")
def token(web: Web) -> str:
    return web.token()


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process listens, what is sent after a commit must find that out at once."""
    monkeypatch.setattr("campaigns.notify.there_is_more", lambda *args: None)
    monkeypatch.setattr("campaigns.dispatch.advance", lambda campaign_id: None)
    monkeypatch.setattr("campaigns.api.limits._counts", {})


class Agent:
    """Django's own client with a token."""

    def __init__(self, *scopes: str, **fields: Any) -> None:
        self.row, self.secret = ApiToken.issue(
            "agent", list(scopes), fields.pop("owner", None) or person("owner"), **fields
        )
        self.client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {self.secret}"})

    def get(self, path: str) -> Any:
        return self.client.get(f"/api{path}")

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"/api{path}", body, content_type="application/json")


@pytest.fixture
def agent(db: None, no_broker: None) -> Agent:
    return Agent("read", "submit", "create")
