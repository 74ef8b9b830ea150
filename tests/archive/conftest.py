from __future__ import annotations

import io

import pytest

from campaigns import archive

from . import samples


@pytest.fixture
def rich(db):
    return samples.rich()


@pytest.fixture
def exported(rich):
    file = io.BytesIO()
    archive.export(rich, file)
    return file.getvalue()
