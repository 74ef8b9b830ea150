from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from profiling.importers import import_profile
from profiling.models import Profile, State
from profiling.models.profile import report_fields
from tests.profiling.captures import Export
from tests.profiling.conftest import DEMO


@pytest.fixture
def owner(db: None) -> Any:
    return get_user_model().objects.create_user("owner")


@pytest.fixture
def mate(db: None) -> Any:
    return get_user_model().objects.create_user("mate")


@pytest.fixture
def client(owner: Any) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def ready(file: Path, name: str, owner: Any, sha256: str) -> Profile:
    profile = Profile(name=name, sha256=sha256, size_bytes=1, uploaded_by=owner, state=State.READY)
    report = import_profile(file, profile.store_path).report
    for key, value in report_fields(report).items():
        setattr(profile, key, value)
    profile.save()
    return profile


@pytest.fixture
def profile(media: Path, owner: Any) -> Profile:
    return ready(DEMO, "decode_h200.sqlite", owner, "a" * 64)


@pytest.fixture
def hostile(media: Path, owner: Any, tmp_path: Path) -> Profile:
    """A capture whose names are markup."""
    export = Export().range("<img src=x onerror=alert(2)>", 5, 100_000)
    for i in range(20):
        export.launched("</script><script>alert(1)</script>", 2000 + 2000 * i, 2500 + 2000 * i, i + 1)
    return ready(export.write(tmp_path / "h.sqlite"), "<b>bold</b>.sqlite", owner, "b" * 64)
