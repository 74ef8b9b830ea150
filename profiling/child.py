"""Start an import in a child process and follow it. No Django here."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from profiling.importers.limits import Refused

ROOT = Path(__file__).resolve().parent.parent
GRACE_S = 10
MAX_LINE_BYTES = 64 << 20


def run_import(
    file: Path,
    store: Path,
    name: str,
    seconds: int,
    memory_bytes: int,
    tell: Callable[[int, str], bool],
    nsys: str = "",
    sandbox_optional: bool = False,
) -> dict[str, Any]:
    """The report of importing ``file`` into ``store``.

    :param tell: called with percent and phase at least once a second; False stops the import.
    :param nsys: the program that exports an .nsys-rep, if any; ``sandbox_optional``: also where it cannot be sandboxed.
    :raises Refused: what is wrong with the file, or how the process ended.
    """
    command = [sys.executable, "-m", "profiling.importers", str(file), str(store), "--name", name]
    command += ["--seconds", str(seconds), "--memory-bytes", str(memory_bytes)]
    command += ["--parent", str(os.getpid()), "--nsys", nsys]
    command += ["--sandbox-optional"] if sandbox_optional else []
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return follow(process, time.monotonic() + seconds + GRACE_S, tell)
    finally:
        end(process)


def follow(process: subprocess.Popen[bytes], deadline: float, tell: Callable[[int, str], bool]) -> dict[str, Any]:
    percent, phase = 0, "starting"
    for message in messages(process, deadline):
        if "report" in message:
            return dict(message["report"])
        if "refused" in message:
            raise Refused(**message["refused"])
        percent, phase = message.get("percent", percent), message.get("phase", phase)
        if not tell(percent, phase):
            raise Stopped
    raise Refused(*how_it_ended(process, deadline))


class Stopped(Exception):
    """The import was called off: its profile was deleted, or another process has taken it over."""


def messages(process: subprocess.Popen[bytes], deadline: float) -> Iterator[dict[str, Any]]:
    """What the child says, line by line; an empty message each second in which it says nothing."""
    assert process.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.select(1.0):
                yield {}
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk or len(pending) > MAX_LINE_BYTES:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines)


def how_it_ended(process: subprocess.Popen[bytes], deadline: float) -> tuple[str, str]:
    if time.monotonic() >= deadline:
        hint = "Capture a shorter window, or raise PROFILE_IMPORT_LIMIT_S."
        return "the import took longer than its limit and was stopped", hint
    code = process.wait()
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return (
        f"the import process ended unexpectedly ({how})",
        "The file is kept. Try again; if it ends the same way, capture a shorter window and report the fault.",
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and all that it may have started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
