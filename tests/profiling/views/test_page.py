from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from profiling import importing, uploads
from profiling.models import Profile

pytestmark = pytest.mark.usefixtures("media", "no_broker")


def test_the_title_is_the_finding_in_words(client: Client, profile: Profile) -> None:
    page = client.get(profile.get_absolute_url()).content.decode()
    assert "<h1>Launch-bound: the GPU is busy 7.8 % of the time</h1>" in page
    assert "7,842 kernels" in page
    assert "The same work in 32 pieces" in page


def test_the_planted_token_is_on_no_page(client: Client, profile: Profile) -> None:
    for path in ("", "window?lo=0&hi=300000000&px=900", "event/0", "find?q=TOKEN&at=0", "status"):
        content = client.get(f"{profile.get_absolute_url()}{path}").content
        assert b"must-not-be-kept" not in content
        assert b"EXAMPLE_API_TOKEN" not in content


def test_names_from_a_capture_are_text(client: Client, hostile: Profile) -> None:
    page = client.get(hostile.get_absolute_url()).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<b>bold" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "<b>bold" not in client.get("/profiles/").content.decode()


def test_the_setup_of_the_timeline_is_json(client: Client, profile: Profile) -> None:
    page = client.get(profile.get_absolute_url()).content.decode()
    found = re.search(r'<script id="timeline-setup" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    setup = json.loads(found.group(1))
    assert setup["start"] <= setup["view"][0] < setup["view"][1] <= setup["end"]
    assert {lane["kind"] for lane in setup["lanes"]} == {"nvtx", "gpu", "sync", "api"}


def stored(content: bytes = b"junk") -> Profile:
    return uploads.take(SimpleUploadedFile("run.bin", content), None)[0]


def test_a_waiting_profile_asks_for_its_state_each_second(client: Client) -> None:
    page = client.get(stored().get_absolute_url()).content.decode()
    assert 'hx-trigger="every 1s"' in page
    assert "Waiting for a worker" in page


def test_a_failed_profile_says_what_to_do_and_can_be_tried_again(client: Client, no_broker: list[str]) -> None:
    profile = stored()
    importing.run(str(profile.pk))
    page = client.get(profile.get_absolute_url()).content.decode()
    assert "What to do:" in page
    assert "Try again" in page
    no_broker.clear()
    client.post(f"/profiles/{profile.pk}/retry")
    assert no_broker == [str(profile.pk)]


def test_the_page_loads_anew_when_the_import_is_done(client: Client, profile: Profile) -> None:
    assert client.get(f"/profiles/{profile.pk}/status")["HX-Refresh"] == "true"


def test_a_store_that_is_gone_is_said(client: Client, profile: Profile) -> None:
    import shutil

    shutil.rmtree(profile.folder)
    answer = client.get(profile.get_absolute_url())
    assert answer.status_code == 410
    assert "upload the capture again" in answer.content.decode()


def test_deleting_takes_row_and_files(client: Client, profile: Profile) -> None:
    folder = profile.folder
    client.post(f"/profiles/{profile.pk}/delete")
    assert not Profile.objects.exists()
    assert not folder.exists()


def test_only_the_uploader_may_delete(profile: Profile, mate: Any) -> None:
    other = Client()
    other.force_login(mate)
    other.post(f"/profiles/{profile.pk}/delete")
    assert Profile.objects.count() == 1


def test_an_upload_cannot_be_downloaded(client: Client) -> None:
    profile = stored()
    for path in (
        f"/media/profiles/{profile.pk}/upload",
        f"/profiles/{profile.pk}/upload",
        f"/static/{profile.pk}/upload",
    ):
        assert client.get(path).status_code == 404


def test_the_capture_can_be_opened_in_perfetto(client: Client, profile: Profile) -> None:
    answer = client.get(f"/profiles/{profile.pk}/perfetto.json")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert answer["Content-Disposition"].startswith("attachment")
    assert len(json.loads(text)["traceEvents"]) > 7842
    assert "must-not-be-kept" not in text


def test_each_top_kernel_says_what_holds_it_up(client: Client, profile: Profile) -> None:
    page = client.get(profile.get_absolute_url()).content.decode()
    assert "The GPU stands idle" in page
    assert ">launch-bound</div>" in page
