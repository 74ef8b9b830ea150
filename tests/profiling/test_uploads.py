from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from profiling import importing, uploads
from profiling.models import Profile
from tests.profiling.conftest import DEMO

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media", "no_broker")]


def file(content: bytes = b"SQLite format 3\0", name: str = "a.sqlite") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def test_the_same_bytes_lead_to_the_profile_that_is_there(no_broker: list[str]) -> None:
    first, is_new = uploads.take(file(name="a.sqlite"), None)
    again, again_new = uploads.take(file(name="b.sqlite"), None)
    assert (is_new, again_new) == (True, False)
    assert again.pk == first.pk
    assert Profile.objects.count() == 1


def test_a_ready_profile_is_not_imported_again(no_broker: list[str]) -> None:
    profile, _ = uploads.take(file(DEMO.read_bytes()), None)
    importing.run(str(profile.pk))
    no_broker.clear()
    again, _ = uploads.take(file(DEMO.read_bytes()), None)
    assert again.is_ready()
    assert no_broker == []
    assert not again.has_upload()


def test_a_failed_one_is_tried_again(no_broker: list[str]) -> None:
    profile, _ = uploads.take(file(), None)
    importing.run(str(profile.pk))
    no_broker.clear()
    uploads.take(file(), None)
    assert no_broker == [str(profile.pk)]


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\..\\evil.sqlite", "/abs/x.sqlite", "a\x00b", ""])
def test_a_path_in_a_name_is_harmless(name: str, media: Path) -> None:
    upload = file()
    upload.file.name = name
    assert "/" not in uploads.display_name(name)
    assert "\\" not in uploads.display_name(name)
    profile, _ = uploads.take(upload, None)
    assert profile.upload_path == media / "profiles" / str(profile.pk) / "upload"


def test_an_upload_is_readable_by_its_owner_only() -> None:
    profile, _ = uploads.take(file(), None)
    assert stat.S_IMODE(profile.upload_path.stat().st_mode) == 0o600


def test_a_file_above_the_limit_is_not_taken(settings: Any) -> None:
    settings.PROFILE_MAX_BYTES = 10
    with pytest.raises(uploads.NotTaken, match="the limit is 10 B"):
        uploads.take(file(), None)
    assert Profile.objects.count() == 0


def test_a_full_disk_leaves_no_half_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads, "store", full)
    with pytest.raises(uploads.NotTaken, match="No space left"):
        uploads.take(file(), None)
    assert Profile.objects.count() == 0


def test_without_a_broker_the_upload_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from profiling import tasks

    def down(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(tasks.import_profile, "apply_async", down)
    profile, _ = uploads.take(file(), None)
    assert profile.state == "uploaded"
    assert profile.has_upload()


def test_half_an_upload_does_not_stay_on_the_disk_that_it_filled(
    client: Any, django_user_model: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR, settings.FILE_UPLOAD_MAX_MEMORY_SIZE = tmp_path, 10
    client.force_login(django_user_model.objects.create_user("ann"))
    client.raise_request_exception = False
    there: list[int] = []

    def full(*_: object) -> None:
        there.append(len(list(tmp_path.iterdir())))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("django.core.files.uploadhandler.TemporaryFileUploadHandler.receive_data_chunk", full)
    answer = client.post("/profiles/upload", {"file": file(b"x" * 1000)})
    assert (answer.status_code, there, list(tmp_path.iterdir())) == (503, [1], [])
