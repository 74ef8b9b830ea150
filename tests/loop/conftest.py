"""A real broker for these tests: a Valkey of their own on a Unix socket. No worker listens, so messages stay to be looked at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from autoresearch_web.local import broker
from campaigns import dispatch


@pytest.fixture(scope="module")
def valkey() -> Iterator[redis.Redis]:
    socket_path = settings.REDIS_URL.removeprefix("unix://")
    Path(socket_path).unlink(missing_ok=True)
    process = subprocess.Popen(broker.argv(socket_path, str(settings.AUTORESEARCH_HOME)), stdout=subprocess.DEVNULL)
    assert broker.answers(settings.REDIS_URL, within_s=10)
    yield dispatch.broker()
    process.terminate()
    process.wait(10)


@pytest.fixture
def at_broker(valkey: redis.Redis) -> redis.Redis:
    valkey.flushall()
    return valkey
