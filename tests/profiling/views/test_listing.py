from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from profiling.models import Profile
from tests.profiling.conftest import DEMO

pytestmark = pytest.mark.usefixtures("media", "no_broker")


def upload(client: Client, content: bytes, **headers: str) -> Any:
    return client.post("/profiles/upload", {"file": SimpleUploadedFile("run.sqlite", content)}, headers=headers)


def test_an_empty_list_says_what_to_do(client: Client) -> None:
    page = client.get("/profiles/").content.decode()
    assert "nsys profile --trace=cuda,nvtx" in page
    assert "At most 4 GiB" in page


def test_the_list_shows_the_finding_in_words(client: Client, profile: Profile) -> None:
    page = client.get("/profiles/").content.decode()
    assert "Launch-bound: the GPU is busy 7.8\N{NO-BREAK SPACE}% of the time" in page
    assert profile.get_absolute_url() in page


def test_a_stranger_sees_nothing(profile: Profile) -> None:
    for path in ("/profiles/", profile.get_absolute_url(), f"/profiles/{profile.pk}/window?lo=0&hi=9&px=9"):
        assert Client().get(path).status_code == 302


def test_a_plain_form_leads_to_the_profile(client: Client) -> None:
    answer = upload(client, DEMO.read_bytes())
    profile = Profile.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, profile.get_absolute_url())
    assert profile.uploaded_by is not None


def test_a_script_gets_the_address_as_json(client: Client) -> None:
    answer = upload(client, DEMO.read_bytes(), accept="application/json")
    assert answer.json() == {"url": Profile.objects.get().get_absolute_url(), "known": False}
    assert upload(client, DEMO.read_bytes(), accept="application/json").json()["known"] is True


def test_a_form_without_a_file_says_so(client: Client) -> None:
    answer = client.post("/profiles/upload", headers={"accept": "application/json"})
    assert answer.status_code == 422
    assert "No file came" in answer.json()["error"]


def test_the_size_limit_is_told(client: Client, settings: Any) -> None:
    settings.PROFILE_MAX_BYTES = 1000
    answer = upload(client, DEMO.read_bytes(), accept="application/json")
    assert answer.status_code == 422
    assert "the limit is 1e+03 B" not in answer.json()["error"]
    assert "the limit is 1000 B" in answer.json()["error"]


def test_a_failed_import_says_why_in_the_list(client: Client) -> None:
    from profiling import importing

    upload(client, b"nothing of use")
    importing.run(str(Profile.objects.get().pk))
    page = client.get("/profiles/").content.decode()
    assert "not imported" in page
    assert "not a profile of a known format" in page
