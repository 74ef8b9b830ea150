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

django.setup()
