"""A pan in a real Chromium: from the key press to the frame that shows it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PANS = 40
STEP = """async (key) => {
  const box = document.getElementById("timeline"), before = Number(box.dataset.painted);
  const begun = performance.now();
  box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  while (Number(box.dataset.painted) <= before && performance.now() - begun < 5000) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
SETUP = """
import json, sys
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from profiling.models import Profile, State
from profiling.models.profile import report_fields
from profiling import report
from pathlib import Path
call_command("migrate", verbosity=0, interactive=False)
profile = Profile(name="bench", sha256="b" * 64, size_bytes=1, state=State.READY)
profile.folder.mkdir(parents=True)
profile.store_path.symlink_to(sys.argv[1])
for key, value in report_fields(report.build(Path(sys.argv[1]))).items():
    setattr(profile, key, value)
profile.save()
client = Client()
client.force_login(get_user_model().objects.create_user("bench"))
print(json.dumps({"path": profile.get_absolute_url(), "session": client.cookies["sessionid"].value}))
"""


def measure(store: Path, home: Path) -> list[float]:
    """Milliseconds of each of PANS pans over a profile that is served from ``store``, at mixed zooms.

    :raises RuntimeError: where there is no Chromium, or playwright is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("playwright is not installed: pip install -e '.[dev]'") from error
    if not CHROMIUM.exists():
        raise RuntimeError(f"no Chromium at {CHROMIUM}: install it, or set CHROMIUM")
    with served(store, home) as (url, session), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        context = browser.new_context(viewport={"width": 1700, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
        page = context.new_page()
        page.goto(url)
        page.wait_for_function("document.querySelector('#timeline')?.dataset.painted > 2", timeout=60_000)
        took = list(pans(page))
        browser.close()
    return took


def pans(page: Any) -> Iterator[float]:
    for number in range(PANS):
        if number % 4 == 0:
            page.keyboard.press("w")
            page.wait_for_timeout(400)
        yield float(page.evaluate(STEP, "d" if number % 3 else "a"))


@contextmanager
def served(store: Path, home: Path) -> Iterator[tuple[str, str]]:
    """A server over a data folder of its own with the profile in it: (address of its page, session cookie)."""
    import json

    environment = os.environ | {"AUTORESEARCH_HOME": str(home), "DJANGO_SETTINGS_MODULE": "autoresearch_web.settings"}
    argv = [sys.executable, "-c", SETUP, str(store)]
    made = json.loads(subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, check=True).stdout)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    argv = [sys.executable, "-m", "uvicorn", "autoresearch_web.asgi:application", "--port", str(port)]
    server = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://localhost:{port}"
        wait_for(f"{url}/static/js/timeline.js", 60)
        yield url + made["path"], made["session"]
    finally:
        server.terminate()
        server.wait(20)


def wait_for(url: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
