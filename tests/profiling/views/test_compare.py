from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from profiling.models import Profile
from tests.profiling.conftest import DEMO

pytestmark = pytest.mark.usefixtures("media")


def page(client: Client, **query: Any) -> str:
    return client.get("/profiles/compare", query).content.decode()


def test_the_profile_s_page_leads_to_a_comparison(client: Client, profile: Profile) -> None:
    assert f'href="/profiles/compare?a={profile.pk}"' in client.get(profile.get_absolute_url()).content.decode()


def test_without_a_second_capture_one_is_asked_for(client: Client, profile: Profile) -> None:
    text = page(client, a=profile.pk)
    assert f'<option value="{profile.pk}" selected>' in text
    assert "<h1>Compare two captures</h1>" in text


def test_an_id_that_is_no_ready_profile_is_said(client: Client, profile: Profile) -> None:
    answer = client.get(f"/profiles/compare?a={profile.pk}&b=1")
    assert answer.status_code == 404
    assert "No profile that is ready has the id given as b." in answer.content.decode()


def test_two_ranges_of_one_capture_are_compared(client: Client, profile: Profile) -> None:
    text = page(client, a=profile.pk, b=profile.pk, range="chunk=1024", range_b="chunk=32768")
    assert "<h1>B faster: 7.70×</h1>" in text
    assert "mla_chunk_0 … mla_chunk_31 stand inside mla" in text
    assert 'id="timeline-a"' in text
    assert 'id="timeline-b"' in text


def test_the_timelines_start_where_their_ranges_do(client: Client, profile: Profile) -> None:
    text = page(client, a=profile.pk, b=profile.pk, range="chunk=1024", range_b="chunk=32768")
    setup = json.loads(text.split('id="timelines-setup" type="application/json">')[1].split("</script>")[0])
    assert (setup["a"]["origin"], setup["b"]["origin"]) == (95_517_886, 159_017_263)
    assert setup["span"] == 63_485_217


def test_a_range_that_is_not_there_is_said(client: Client, profile: Profile) -> None:
    answer = client.get("/profiles/compare", {"a": profile.pk, "b": profile.pk, "range": "<b>zebra"})
    assert answer.status_code == 422
    assert "No range is called “&lt;b&gt;zebra”" in answer.content.decode()


def test_names_from_captures_are_text(client: Client, hostile: Profile) -> None:
    text = page(client, a=hostile.pk, b=hostile.pk)
    assert "<script>alert" not in text
    assert "<img src=x" not in text


@pytest.mark.parametrize("pk", ["", "x", "00000000-0000-0000-0000-000000000000", "' OR 1=1"])
def test_an_id_of_nothing_leads_to_the_form(pk: str, client: Client) -> None:
    answer = client.get("/profiles/compare", {"a": pk, "b": pk})
    assert answer.status_code == (404 if pk else 200)
    assert 'name="a"' in answer.content.decode()
    assert ("No profile that is ready" in answer.content.decode()) == bool(pk)


def test_a_marked_region_can_be_chosen(client: Client, profile: Profile) -> None:
    client.post(f"/profiles/{profile.pk}/regions", {"start_ns": 20_649_143, "end_ns": 159_003_103, "note": "dumb"})
    assert 'value="ns:20649143-159003103"' in page(client, a=profile.pk)


def test_scripts_get_json(client: Client, profile: Profile) -> None:
    query = {"a": profile.pk, "b": profile.pk, "range": "chunk=1024", "range_b": "chunk=32768"}
    found = client.get("/profiles/compare", query, headers={"accept": "application/json"}).json()
    assert found["ratio"] == 7.6979


@pytest.mark.django_db
def test_the_command_compares_files(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("compare_profiles", str(DEMO), str(DEMO), "--range", "chunk=1024", "--range", "chunk=32768", "--json")
    assert json.loads(capsys.readouterr().out)["ratio"] == 7.6979


@pytest.mark.django_db
def test_the_command_refuses_with_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("compare_profiles", str(tmp_path / "none"), str(DEMO), "--json")
    assert ended.value.code == 2
    assert set(json.loads(capsys.readouterr().out)) == {"error", "hint"}


def test_captures_of_one_attempt_are_told_apart_in_the_list(client: Client, profile: Profile) -> None:
    title = "Mixture of experts of a decode step, two experts a token on h200"
    for side in ("candidate", "baseline"):
        Profile.objects.create(
            name=f"{title} · attempt 1 · {side}, torch.json.gz", sha256=side * 7, size_bytes=1, state="ready"
        )
    shown = page(client)
    assert "… · attempt 1 · candidate, torch ·" in shown
    assert "… · attempt 1 · baseline, torch ·" in shown
