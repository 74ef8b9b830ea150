"""The checks of ``manage.py doctor``: each looks at one thing and says what follows from it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from . import broker, hardware
from .stack import running

PACKAGES = ("Django", "channels", "celery", "redis", "torch", "triton", "plotly", "anthropic", "nvtx", "optuna")


@dataclass(frozen=True)
class Check:
    name: str
    state: Literal["ok", "optional", "missing"]
    """``optional``: something works without it; ``missing``: nothing works until it is there."""
    detail: str
    hint: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    def line(self) -> str:
        mark = {"ok": "✓", "optional": "–", "missing": "✕"}[self.state]
        return f"{mark} {self.name:<14} {self.detail}" + (f"\n                 → {self.hint}" if self.hint else "")


def examine() -> list[Check]:
    looks: list[Callable[[], Iterator[Check]]] = [
        python,
        packages,
        data_folder,
        database,
        message_broker,
        compiler,
        sandbox,
        gpus,
        profilers,
        models,
        services,
    ]
    return [check for look in looks for check in look()]


def python() -> Iterator[Check]:
    yield Check("Python", "ok", f"{platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")


def packages() -> Iterator[Check]:
    found, absent = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            absent.append(name)
    yield Check(
        "packages",
        "missing" if absent else "ok",
        ", ".join(found),
        f"make install ({', '.join(absent)})" if absent else "",
    )


MIN_FREE_GB = 0.5
"""Below this an upload, or the broker's own copy, soon fills the disk."""


def data_folder() -> Iterator[Check]:
    home = Path(settings.AUTORESEARCH_HOME)
    free_gb = shutil.disk_usage(home).free / 1e9
    writable = os.access(home, os.W_OK)
    hint = "" if writable else "set AUTORESEARCH_HOME to a folder that you may write to"
    if writable and free_gb < MIN_FREE_GB:
        hint = "make room there, or set AUTORESEARCH_HOME to a folder on another disk"
    yield Check("data folder", "missing" if hint else "ok", f"{home}, {free_gb:.1f} GB free", hint)


def database() -> Iterator[Check]:
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Exception as error:
        yield Check("database", "missing", f"{connection.vendor}: {error}", "check DATABASE_URL")
        return
    hint = "`manage.py migrate` (`manage.py up` does it by itself)" if pending else ""
    yield Check(
        "database", "optional" if pending else "ok", f"{connection.vendor}, {len(pending)} migrations pending", hint
    )


def message_broker() -> Iterator[Check]:
    if os.environ.get("REDIS_URL"):
        answers = broker.answers(settings.REDIS_URL)
        hint = "" if answers else "start it, or unset REDIS_URL to use the embedded one"
        yield Check(
            "broker",
            "ok" if answers else "missing",
            "REDIS_URL is set" + (", it answers" if answers else ", no answer"),
            hint,
        )
        return
    try:
        yield Check("broker", "ok", f"embedded: {broker.find_server()}")
    except broker.NoBroker as error:
        yield Check("broker", "missing", "none found", str(error))


def compiler() -> Iterator[Check]:
    for name, package, what in (
        ("g++", "g++", "C++ candidates, torch.compile"),
        ("nvcc", "the CUDA toolkit", "CUDA candidates"),
    ):
        path = shutil.which(name)
        state: Literal["ok", "optional", "missing"] = "ok" if path else ("missing" if name == "g++" else "optional")
        yield Check(
            name, state, version(path) if path else f"not found: no {what}", "" if path else f"install {package}"
        )


def version(path: str) -> str:
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    lines = [line for line in answer.stdout.splitlines() if line.strip()]
    return next((line for line in lines if "release" in line), lines[0] if lines else path)


def sandbox() -> Iterator[Check]:
    from campaigns.harness import sandbox as box

    for protection, holds in box.probe().items():
        yield Check(
            f"sandbox: {protection}",
            "ok" if holds else "missing",
            "holds" if holds else "does not hold",
            "" if holds else "see docs/harness.md",
        )


def gpus() -> Iterator[Check]:
    names = hardware.gpu_names()
    yield Check("GPU", "ok" if names else "optional", ", ".join(names) or "none: CPU problems only", "")


def profilers() -> Iterator[Check]:
    for name, what in (
        ("nsys", "Nsight Systems: .nsys-rep uploads"),
        ("ncu", "Nsight Compute: counters of candidates"),
    ):
        path = shutil.which(name)
        yield Check(name, "ok" if path else "optional", version(path) if path else f"not found: no {what}")


def models() -> Iterator[Check]:
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        there = bool(os.environ.get(variable))
        yield Check(
            variable, "ok" if there else "optional", "set" if there else "not set: the tuner and replay need none"
        )


def services() -> Iterator[Check]:
    state = running()
    detail = f"running at {state.get('url')} (process {state.get('pid')})" if state else "not running"
    yield Check("manage.py up", "ok" if state else "optional", detail)
