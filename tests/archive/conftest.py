from __future__ import annotations

import io

import pytest

from campaigns import archive
from tests.loop.conftest import at_broker, valkey

from . import samples

__all__ = ["at_broker", "valkey"]


@pytest.fixture(autouse=True)
def own_media(settings, tmp_path_factory):
    settings.MEDIA_ROOT = tmp_path_factory.mktemp("media")


@pytest.fixture
def rich(db, at_broker):
    made = samples.rich()
    samples.profiled(made.attempts.get(number=1))
    return made


@pytest.fixture
def exported(rich):
    file = io.BytesIO()
    archive.export(rich, file)
    return file.getvalue()
