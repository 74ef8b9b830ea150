"""A problem's own code asked in this process: the same host, messages and memory, without the sandbox around them.

A start of a sandbox with torch takes two seconds, and a check needs two. What a question finds does not depend on where the
code runs; that the code runs in a sandbox, dies in one and is asked again in a fresh one is tried in ``test_check_problem`` too.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.harness.channel import Channel
from campaigns.harness.contained import Output
from campaigns.harness.inside.reference_host import Host
from campaigns.harness.inside.serve import describe
from campaigns.harness.problem import Problem
from campaigns.harness.problem_check.desk import Desk


class NearChannel(Channel):
    """The line of a host that lives in this process. Messages become JSON and back, as they do on a socket."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self.output = Output()
        self.mapped_bytes = 0
        self.closed = False

    def ask(self, what: str, limit_s: float, fds: list[int] | None = None, **more: Any) -> dict[str, Any]:
        nonce = secrets.token_hex(8)
        message = json.loads(json.dumps({"id": nonce, "do": what, **more}))
        try:
            answer = self.host.handle(message, [os.dup(fd) for fd in fds or []])
        except Exception as error:
            answer = describe(error)
        return self._read(json.dumps({"id": nonce, **answer}).encode(), nonce)

    def wait_ready(self, limit_s: float) -> None:
        pass

    def exited(self) -> bool:
        return False

    def drain(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class NearDesk(Desk):
    """Each loads the problem's files anew, as a fresh process does."""

    def __init__(self, problem: Problem, should_stop: Callable[[], bool], limit_s: float) -> None:
        self.problem, self.limit_s, self.opened = problem, limit_s, 0
        with tempfile.TemporaryDirectory() as folder:
            config = {}
            for key in ("inputs", "reference"):
                path = Path(folder, f"{key}.py")
                path.write_text(problem.files[path.name])
                config[key] = str(path)
            self.channel = NearChannel(Host(config))
