"""Tests have a data folder of their own: it is set before Django reads its settings."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

HOME = tempfile.mkdtemp(prefix="autoresearch-tests-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["AUTORESEARCH_HOME"] = HOME
os.environ["DJANGO_SETTINGS_MODULE"] = "autoresearch_web.settings"
for name in ("REDIS_URL", "DATABASE_URL"):
    os.environ.pop(name, None)

import django  # noqa: E402
import pytest  # noqa: E402

django.setup()

MEASURING = ("tests/system/", "tests/browser/", "tests/harness/", "tests/scenarios/", "tests/agents/", "tests/api/")
"""These start whole products, browsers and sandboxes, and some of them measure time: on a machine that others share, one
of two thousand may be starved. Such a test is given a second try, which the summary shows as "rerun"; a fault fails twice."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(MEASURING):
            item.add_marker(pytest.mark.flaky(reruns=1))
