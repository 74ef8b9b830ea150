from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from campaigns.harness.request import CandidateSource
from campaigns.proposers.base import Desk, PastAttempt, Task
from tests.loop.conftest import at_broker, valkey

__all__ = ["at_broker", "valkey"]

SERVER = Path(__file__).with_name("server.py")
START = """#include <cstdint>
constexpr int LANES = 8;  // tunable: 8, 16, 32
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
"""
BETTER = START.replace("2.0f * x[i]", "x[i] + x[i]")
USAGE = {"input": 5_000, "cached": 3_000, "written": 1_000, "output": 321}


class Server:
    """The scripted server as a process, and what it noted."""

    def __init__(self, folder: Path, script: dict[str, list[dict[str, Any]]]) -> None:
        self.log = folder / "requests.jsonl"
        self.log.touch()
        port_file, script_file = folder / "port", folder / "script.json"
        script_file.write_text(json.dumps(script))
        argv = [sys.executable, str(SERVER), str(port_file), str(self.log), str(script_file)]
        self.process = subprocess.Popen(argv)
        end = time.monotonic() + 20
        while not port_file.exists():
            assert time.monotonic() < end, "the scripted server did not start"
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{port_file.read_text()}"

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def counted(self) -> dict[str, int]:
        """The sum of what the server told its clients."""
        usages = [r["usage"] for r in self.requests() if r["usage"]]
        return {name: sum(u.get(name, 0) for u in usages) for name in ("input", "cached", "written", "output")}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Start a server for a script, and let both vendors' clients ask it."""
    servers: list[Server] = []

    def start(*steps: dict[str, Any], **models: list[dict[str, Any]]) -> Server:
        folder = tmp_path / str(len(servers))
        folder.mkdir()
        server = Server(folder, {"m": list(steps), **models})
        servers.append(server)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-of-the-test-0123456789")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-oai-secret-of-the-test-0123456789")
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(autouse=True)
def patient(settings: Any) -> None:
    settings.MODEL_BACKOFF_MS = 20


@pytest.fixture(params=["anthropic", "openai"])
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def source(text: str = START) -> CandidateSource:
    return CandidateSource(backend="cpp", files={"kernel.cpp": text})


def make_task(**fields: Any) -> Task:
    reverted = PastAttempt(
        number=1, verdict="reverted", candidate=source(), speedup=0.9, title="more lanes", reason="slower"
    )
    return Task(
        **{
            "problem": "double",
            "backend": "cpp",
            "incumbent": source(),
            "start": source(),
            "number": 2,
            "attempts": (reverted,),
            "title": "Double",
            "idea": "Add instead of multiplying.",
            "rules": "Nothing is cached.",
            "context": "# A card\nOne core.",
            **fields,
        }
    )


def submit(files: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    arguments = {"title": "Add", "rationale": "One instruction less.", "files": files or {"kernel.cpp": BETTER}}
    return {"name": "submit", "arguments": {**arguments, **fields}}


def propose(vendor: str, task: Task | None = None, desk: Desk | None = None, **options: Any) -> Any:
    """One proposal by the real client; ``(proposal, calls, text)``."""
    from dataclasses import replace

    from campaigns.proposers import registry

    should_stop = options.pop("should_stop", None)
    calls: list[Any] = []
    said: list[str] = []
    agent: Any = registry.make(vendor, {"model": "m", **options})
    agent.desk = replace(desk or Desk(), note_call=calls.append)
    agent.seen = (calls, said)
    try:
        return agent.propose(task or make_task(), on_text=said.append, should_stop=should_stop), calls, "".join(said)
    except Exception as error:
        error.calls, error.said = calls, "".join(said)  # type: ignore[attr-defined]
        raise
