"""A real server with a real broker and a data folder of its own, and a process beside it that changes the rows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HAND = """
import json, sys, django
django.setup()
from campaigns import actions, notify
from campaigns.models import *
from tests.factories import *
scope = dict(globals())
for line in sys.stdin:
    exec(json.loads(line), scope)
    print(json.dumps(scope.pop("out", None)), flush=True)
"""


class Site:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {**os.environ, "AUTORESEARCH_HOME": str(home), "DJANGO_SETTINGS_MODULE": "autoresearch_web.settings"}
        self.env.pop("REDIS_URL", None)
        self.env["PYTHONPATH"] = str(ROOT)
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = int(sock.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=self.env, check=True)
        self.broker = self.start_broker()
        self.start()
        self.hand = subprocess.Popen(
            [sys.executable, "-c", HAND],
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start_broker(self) -> subprocess.Popen[bytes]:
        from autoresearch_web.local import broker

        argv = broker.argv(str(self.home / "valkey.sock"), str(self.home))
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        argv = [sys.executable, "-m", "uvicorn", "autoresearch_web.asgi:application", "--port", str(self.port)]
        self.log = (self.home / "web.log").open("ab")
        self.web = subprocess.Popen(
            [*argv, "--log-level", "warning"], cwd=ROOT, env=self.env, stdout=self.log, stderr=self.log
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=2)
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((self.home / "web.log").read_text())

    def stop_web(self) -> None:
        self.web.kill()
        self.web.wait()
        self.log.close()

    def do(self, code: str) -> Any:
        """Run it beside the server, as a worker would; what it sets as ``out`` comes back."""
        assert self.hand.stdin
        assert self.hand.stdout
        self.hand.stdin.write(json.dumps(code) + "\n")
        self.hand.stdin.flush()
        answer = self.hand.stdout.readline()
        assert answer, "the hand has died; its error is above"
        return json.loads(answer)

    def empty(self) -> None:
        """No row is left, of people neither."""
        self.do(
            "from django.core.management import call_command; call_command('flush', interactive=False, verbosity=0)"
        )

    def login_link(self, name: str, to: str) -> str:
        token = self.do(f"from autoresearch_web.access import one_time_token; out = one_time_token({name!r})")
        return f"{self.url}/login?token={token}&next={to}"

    def close(self) -> None:
        self.stop_web()
        for process in (self.hand, self.broker):
            process.kill()
            process.wait()
