"""The services of one machine in their order: broker, then the workers together, then the web."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command

from campaigns.harness.gpu.devices import by_kind

from . import broker
from .guard import Guard
from .service import Service, prefixed

ROOT = Path(settings.BASE_DIR)
BROKER, END_WITHIN_S = "broker", 5.0
"""All but the broker are asked to end at the same time, and given so long together; then the broker, which they talk to."""

SECRETS = re.compile(r"_KEY(_FILE)?$|SECRET|TOKEN|PASSWORD|^DATABASE_URL$")


class AlreadyRunning(RuntimeError):
    """Another ``manage.py up`` serves this data folder; its address is in ``args[0]``."""


class Failed(RuntimeError):
    pass


def state_path() -> Path:
    return Path(settings.AUTORESEARCH_HOME) / "up.json"


def running() -> dict[str, Any] | None:
    """What ``up`` wrote about itself, if one runs for this data folder now."""
    try:
        with open(Path(settings.AUTORESEARCH_HOME) / "up.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None  # nobody holds it
    except FileNotFoundError:
        return None
    except BlockingIOError:
        try:
            return json.loads(state_path().read_text())
        except (OSError, ValueError):
            return {}


class Stack:
    """Start, keep and end all services. Use as a context manager; ``keep()`` restarts what dies until it is told to end."""

    def __init__(self, *, web: bool = True, port: int = 8000, host: str = "127.0.0.1", quiet: bool = False) -> None:
        self.web, self.port, self.host = web, port, host
        self.log: Callable[[str, str], None] = (lambda name, line: None) if quiet else prefixed
        self.services: list[Service] = []
        self.ending = False

    @property
    def url(self) -> str:
        return f"http://{'localhost' if self.host == '127.0.0.1' else self.host}:{self.port}"

    def __enter__(self) -> Stack:
        self._lock = open(Path(settings.AUTORESEARCH_HOME) / "up.lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning((running() or {}).get("url", "")) from None
        self.guard = Guard()
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.ending = True
        others = [service for service in reversed(self.services) if service.name != BROKER]
        for some in (others, [service for service in self.services if service.name == BROKER]):
            until = time.monotonic() + END_WITHIN_S
            for service in some:
                service.ask_to_end()
            for service in some:
                service.stop(max(0.0, until - time.monotonic()))
        self.guard.close()
        state_path().unlink(missing_ok=True)
        self._lock.close()

    def _start_all(self) -> None:
        if self.web:
            check_address(self.host, self.port)
        call_command(
            "migrate", verbosity=0, interactive=False
        )  # under the lock: two that begin at once would both make tables
        if not os.environ.get("REDIS_URL"):
            socket_path = settings.REDIS_URL.removeprefix("unix://")
            Path(socket_path).unlink(missing_ok=True)
            service = self._service(BROKER, broker.argv(socket_path, str(settings.AUTORESEARCH_HOME)))
            service.is_ready = lambda: broker.answers(settings.REDIS_URL)
            self._begin([service], 10)
        elif not broker.answers(settings.REDIS_URL, 5):
            raise Failed(f"No broker answers at REDIS_URL={settings.REDIS_URL}. Start it, or unset REDIS_URL.")
        drop_uploads()
        services = [self._worker("loop", "autoresearch_web", 2)]
        services.append(
            self._worker("profiles", "autoresearch_web", 2)
        )  # an import beside a problem's check, which takes minutes
        services.append(self._worker("propose", "autoresearch_web", settings.MODEL_PROPOSALS_AT_ONCE, "--pool=threads"))
        services += self._evaluators()
        services.append(self._service("beat", [*self._celery("autoresearch_web"), "beat", "--pidfile="]))
        services[-1].is_ready = lambda: True
        if self.web:
            argv = [
                sys.executable,
                "-m",
                "uvicorn",
                "autoresearch_web.asgi:application",
                "--host",
                self.host,
                "--port",
                str(self.port),
            ]
            web = self._service(
                "web", [*argv, "--log-level", "warning", "--no-access-log", "--timeout-graceful-shutdown", "2"]
            )
            web.is_ready = lambda: healthy(f"http://{self.host}:{self.port}/healthz")
            services.append(web)
        self._begin(services, 60)
        self._write_state()

    def _write_state(self) -> None:
        pids = {service.name: service.process.pid for service in self.services if service.process}
        state = {"pid": os.getpid(), "url": self.url if self.web else None, "services": pids}
        state_path().write_text(json.dumps(state))

    def _begin(self, services: list[Service], within_s: float) -> None:
        for service in services:
            self.services.append(service)
            service.start()
        for service in services:
            if not service.wait_ready(within_s):
                last = "\n  ".join(service.tail[-8:]) or "(it printed nothing)"
                raise Failed(f"{service.name} did not become ready. Its last words:\n  {last}")

    def _evaluators(self) -> list[Service]:
        """One for the CPU, and for each kind of GPU a worker with a process for each card, which sees no card of another kind."""
        workers = [self._worker("gpu.cpu", "campaigns.harness.worker", 1)]
        workers[0].env["CUDA_VISIBLE_DEVICES"] = ""
        for kind, gpus in by_kind().items():
            workers.append(self._worker(f"gpu.{kind}", "campaigns.harness.worker", len(gpus)))
            workers[-1].env["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        return workers

    def _celery(self, app: str) -> list[str]:
        return [sys.executable, "-m", "celery", "--quiet", "-A", app]

    def _worker(self, queue: str, app: str, processes: int, *more: str) -> Service:
        words = [
            "worker",
            "-Q",
            queue,
            "-n",
            f"{queue}@%h",
            "-c",
            str(processes),
            "-l",
            "INFO",
            "--without-gossip",
            "--without-mingle",
        ]
        service = self._service(queue, [*self._celery(app), *words, "--without-heartbeat", *more])
        service.ready_line = " ready."
        return service

    def _service(self, name: str, argv: list[str]) -> Service:
        env = {
            **os.environ,
            "REDIS_URL": settings.REDIS_URL,
            "AUTORESEARCH_HOME": str(settings.AUTORESEARCH_HOME),
            "PYTHONUNBUFFERED": "1",
        }
        if name.startswith("gpu."):  # an evaluator needs the broker, and has no secret to lose
            env = {key: value for key, value in env.items() if not SECRETS.search(key)}
        return Service(name=name, argv=argv, env=env, log=self.log, guard=self.guard, cwd=ROOT)

    def check(self) -> None:
        """Restart what has died since the last look."""
        if self.guard.renew():
            prefixed("up", "the guard was killed; there is another one")
        for service in self.services:
            if not self.ending and (status := service.died()) is not None:
                prefixed("up", f"{service.name} ended with status {status}; starting it again")
                if service.name == "web":
                    drop_uploads()
                service.restart()
                self._write_state()

    def keep(self) -> None:
        """Restart what dies, until ``ending`` is set by a signal."""
        while not self.ending:
            self.check()
            time.sleep(0.2)


def drop_uploads() -> None:
    """Delete what a web that was killed had taken of uploads: up to gigabytes, of which nobody knows any more."""
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir():
        with contextlib.suppress(OSError):
            path.unlink()


def check_address(host: str, port: int) -> None:
    """Raises ``Failed`` where the web could not listen: said now, and not by a web that never comes up."""
    if not 1 <= port <= 65_535:
        raise Failed(f"There is no port {port}. Choose one from 1 to 65535 with --port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
    except OSError as error:
        why = error.strerror or str(error)
        hint = "End what listens there, or choose another address with --port and --host."
        raise Failed(f"The web cannot listen at {host}, port {port}: {why}. {hint}") from None


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
