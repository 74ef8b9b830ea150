"""A whole product of its own for these tests: ``manage.py up`` in a data folder of its own, as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoresearch_web.local.guard import kill_sessions, session_of
from campaigns.catalog import BUNDLED
from campaigns.harness.problem import read_folder
from campaigns.harness.sandbox import die_with_parent

ROOT = Path(__file__).resolve().parents[2]


def until(what: Callable[[], Any], within_s: float, why: str) -> Any:
    """The first true value of ``what()``; fails after ``within_s``."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {within_s} s: {why}")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


QUICK = ("cpu_r64_h1024", "cpu_r7_h5", "cpu_r1_h1")


def quick_problem(home: Path, name: str = "quick", workloads: tuple[str, ...] = QUICK) -> str:
    """RMSNorm with small workloads only, as a team's own problem: for tests that need verdicts and not what they say."""
    files = read_folder(BUNDLED / "rmsnorm")
    head, *all_workloads = files["problem.toml"].split("[[workloads]]")
    kept = [text for text in all_workloads if any(f'"{wanted}"' in text for wanted in workloads)]
    files["problem.toml"] = "[[workloads]]".join([head.replace('name = "rmsnorm"', f'name = "{name}"'), *kept])
    for path, text in files.items():
        target = home / "problems" / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return name


def faster_kernel() -> str:
    """RMSNorm's start kernel with more partial sums and one walk less: a quarter faster, so that it is kept."""
    text = (BUNDLED / "rmsnorm" / "start" / "kernel.cpp").read_text()
    return text.replace("constexpr int LANES = 2; ", "constexpr int LANES = 16; ").replace(
        "constexpr int FUSE = 0; ", "constexpr int FUSE = 1; "
    )


class Product:
    """A running product, looked at from outside. What it keeps is not profiled, unless a test asks for that in ``env``: it
    would take the only evaluator for ten seconds after each keep."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        keep = {k: v for k, v in os.environ.items() if k not in ("REDIS_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")}
        self.env = {**keep, "AUTORESEARCH_HOME": str(home), "LOST_AFTER_S": "4", "PROFILE_KEPT": "0"}
        self.output = home / "up.log"

    def start(self) -> None:
        with self.output.open("ab") as log:
            argv = [sys.executable, "manage.py", "up", "--port", str(self.port)]
            self.process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,  # also when the tests are killed
            )
        until(lambda: (self.home / "up.json").exists() or self.process.poll() is not None, 60, "manage.py up is ready")
        assert self.process.poll() is None, self.output.read_text()

    def interrupt(self) -> None:
        """Ctrl-C: what is under way is ended in order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)

    def stop(self) -> None:
        """Power off. Nothing is left of it, as tests/system/test_up.py shows."""
        self.process.kill()
        self.process.wait()

    @property
    def services(self) -> dict[str, int]:
        return json.loads((self.home / "up.json").read_text())["services"]

    def kill_service(self, name: str) -> None:
        """SIGKILL a worker and all of its children, as a machine does that loses power."""
        kill_sessions({self.services[name]})

    def processes(self) -> list[int]:
        """Every process of every service."""
        leaders = set(self.services.values())
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and session_of(int(p.name)) in leaders]

    def manage(self, *words: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "manage.py", *words]
        return subprocess.run(
            argv, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def begin(self, *words: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "manage.py", *words]
        return subprocess.Popen(argv, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def catch(self, sql: str, *values: Any, within_s: float, why: str) -> None:
        """Wait for a count that may be above 0 for a few milliseconds only: looks without pause, by one connection."""
        end = time.monotonic() + within_s
        with contextlib.closing(sqlite3.connect(f"file:{self.home / 'autoresearch.sqlite3'}?mode=ro", uri=True)) as db:
            while time.monotonic() < end:
                if db.execute(sql, values).fetchone()[0]:
                    return
        raise AssertionError(f"not within {within_s} s: {why}")

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{self.home / 'autoresearch.sqlite3'}?mode=ro", uri=True, timeout=10) as db:
            return db.execute(sql, values).fetchall()
