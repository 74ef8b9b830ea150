"""Tests have a data folder of their own: it is set before Django reads its settings."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.pages.site import Site
    from tests.system.conftest import Product

HOME = tempfile.mkdtemp(prefix="autoresearch-tests-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["AUTORESEARCH_HOME"] = HOME
os.environ["DJANGO_SETTINGS_MODULE"] = "autoresearch_web.settings"
for name in ("REDIS_URL", "DATABASE_URL"):
    os.environ.pop(name, None)

import django  # noqa: E402
import pytest  # noqa: E402
from xdist.scheduler import LoadScopeScheduling  # noqa: E402

django.setup()
del os.environ["DJANGO_SETTINGS_MODULE"]  # or a worker of pytest-xdist would set Django up before it comes by here

MEASURING = (
    *(f"tests/harness/test_{name}" for name in ("peaks", "ranges", "timing")),
    *(f"tests/harness/test_redteam.py::test_{name}" for name in ("a_timed_cheat", "an_honest_twin")),
    *("tests/scenarios/test_measure", "tests/scenarios/test_worker"),
)
"""These measure time and little else. Evaluations that only ask whether a candidate is right may run beside them."""
CAMPAIGNS = (
    *("tests/agents/test_system", "tests/api/test_whole_campaign"),
    *("tests/browser/test_main_job", "tests/system/test_killed_workers.py::test_a_killed_evaluator"),
)
"""These have whole products measure. While one measures the others wait for its core, as several evaluators of a host do."""
PRODUCT = ("tests/browser/", "tests/intake/test_in_", "tests/system/test_socket", "tests/system/test_up")
KILLED = ("tests/system/test_killed",)
"""Apart from the others that use a product: what these kill would still be starting when the next one asks."""
SITE = (
    *(f"tests/pages/test_{name}" for name in ("accessibility", "in_browser", "hostile_in_browser", "stack_in_browser")),
)
WEB = ("tests/api/test_hostile", "tests/api/test_mcp", "tests/api/test_server")
TOGETHER = {"measuring": MEASURING, "campaigns": CAMPAIGNS, "product": PRODUCT, "killed": KILLED}
TOGETHER |= {"site": SITE, "web": WEB}
"""Tests that go to one process, by the first that names them, in the order of their names; and these come before all others. A
product, a site of pages and a web process are started once for all that share them."""
PARTS = ("agents", "api", "browser", "harness", "intake", "pages", "scenarios", "system")
RETRIED = (*MEASURING, *CAMPAIGNS, *(f"tests/{part}/" for part in PARTS))
"""These start whole products, browsers and sandboxes: on a machine that others share, one of thousands may be starved. Such a
test is given two more tries, which the summary shows as "rerun"; a fault fails every time."""


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # files go to the workers in the order of ``pytest_collection_modifyitems``


def together(nodeid: str) -> str:
    """What of ``TOGETHER`` a test belongs to, or nothing."""
    return next((name for name, starts in TOGETHER.items() if nodeid.startswith(starts)), "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who stays together first, then files with slow tests: the last ones are small, and all processes end at once."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    for item in items:
        if item.nodeid.startswith(RETRIED):
            item.add_marker(pytest.mark.flaky(reruns=2))

    def place(item: pytest.Item) -> tuple[int, int]:
        if not (name := together(item.nodeid)):
            return (len(TOGETHER), item.path not in slow)
        return (
            list(TOGETHER).index(name),
            next(i for i, start in enumerate(TOGETHER[name]) if item.nodeid.startswith(start)),
        )

    items.sort(key=place)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are no name: they are long, and where a time is in them no two processes would name a test alike."""
    return argname if isinstance(val, bytes) else None


class InRooms(LoadScopeScheduling):
    """With ``-n``: one file's tests stay in one process, for what its fixtures share, and so do those of ``TOGETHER``."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid) or nodeid.split("::", 1)[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InRooms:
    return InRooms(config, log)


CHROMIUM = Path(
    os.environ.get("CHROMIUM")
    or shutil.which("chromium-headless-shell")
    or shutil.which("chromium")
    or "/usr/bin/chromium"
)
"""The shell draws and runs pages as the browser does, without the pages of the browser's own windows beside them."""
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium, for one file of tests."""
    if not CHROMIUM.exists():
        pytest.skip(
            f"no Chromium at {CHROMIUM}: install Debian's package chromium-headless-shell or chromium, or set CHROMIUM"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from tests.pages.site import Site

    found = Site(tmp_path_factory.mktemp("site"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def site(one_site: Site) -> Site:
    """A real server and broker, and a process beside it that changes the rows. Empty at the start of each file."""
    one_site.empty()
    return one_site


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """``manage.py up`` in a data folder of its own. Files of tests share it: ask for what is yours, not for all that is there."""
    from tests.system.conftest import Product

    made = Product(tmp_path_factory.mktemp("product"))
    made.start()
    yield made
    made.stop()
