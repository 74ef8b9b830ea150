from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from profiling.models import Profile

pytestmark = pytest.mark.usefixtures("media")


def window(client: Client, profile: Profile, query: str, **headers: str) -> Any:
    return client.get(f"/profiles/{profile.pk}/window?{query}", headers=headers)


def test_a_window_comes_as_compact_json(client: Client, profile: Profile) -> None:
    answer = window(client, profile, "lo=20000000&hi=230000000&px=4500")
    assert len(answer.content) < 150_000
    assert {row["count"] > 0 for row in answer.json()["rows"]} == {True}


def test_the_same_window_again_is_not_sent_again(client: Client, profile: Profile) -> None:
    tag = window(client, profile, "lo=0&hi=100&px=10")["ETag"]
    assert window(client, profile, "lo=0&hi=100&px=10", if_none_match=tag).status_code == 304
    assert window(client, profile, "lo=0&hi=101&px=10", if_none_match=tag).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "",
        "lo=0&hi=0&px=10",
        "lo=5&hi=1&px=10",
        "lo=a&hi=1&px=1",
        "lo=0&hi=9&px=0",
        "lo=0&hi=9&px=99999999",
        f"lo=0&hi={10**30}&px=9",
    ],
)
def test_a_bad_window_is_refused_with_words(query: str, client: Client, profile: Profile) -> None:
    answer = window(client, profile, query)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_window_outside_of_the_capture_is_empty(client: Client, profile: Profile) -> None:
    assert window(client, profile, "lo=900000000000&hi=900000000100&px=100").json()["rows"] == []


def test_a_kernel_is_described_with_launch_path_and_shape(client: Client, profile: Profile) -> None:
    event = client.get(f"/profiles/{profile.pk}/find?q=64x8_64x16_4x2_h_bz_TNT&at=92000000").json()["event"]
    facts = dict(event["facts"])
    assert event["kind"] == "kernel"
    assert facts["grid"] == "8 × 4 × 1"
    assert facts["registers"] == "168 a thread"
    assert facts["launched by"].startswith("cuLaunchKernelEx, ")
    assert facts["NVTX"] == "decode_step#0 chunk=1024 / mla / mla_chunk_27"
    assert facts["this kernel"] == "256 calls, 5.2 % of kernel time"
    again = client.get(f"/profiles/{profile.pk}/event/{event['id']}").json()
    assert again == event


def test_an_event_that_is_not_there_is_404(client: Client, profile: Profile) -> None:
    assert client.get(f"/profiles/{profile.pk}/event/99999999").status_code == 404


def test_nothing_found_is_said(client: Client, profile: Profile) -> None:
    assert client.get(f"/profiles/{profile.pk}/find?q=zebra&at=0").json() == {"names": 0, "event": None}


def test_markup_in_names_travels_as_json_only(client: Client, hostile: Profile) -> None:
    answer = window(client, hostile, "lo=0&hi=100000&px=500")
    assert answer["Content-Type"] == "application/json"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "</script><script>alert(1)</script>" in json.loads(answer.content)["names"].values()
