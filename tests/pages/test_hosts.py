from __future__ import annotations

import msgspec
import pytest
from django.utils import timezone

from campaigns import hosts
from campaigns.harness.report import Host
from campaigns.models import Remeasurement
from tests.factories import make_attempt
from tests.pages.test_review import approve

H200 = Host(
    name="gpu-7",
    kind="NVIDIA H200",
    processor="EPYC",
    versions={"torch": "2.11.0", "triton": "3.6.0", "driver": "580.82"},
    sandbox="bubblewrap",
    sandbox_missing=["a limit on its memory"],
    peaks={"copy_bytes_per_s": 4.13e12, "bfloat16_flop_per_s": 7.8e14},
)


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr("campaigns.dispatch.queue_length", lambda queue: 3)


def announce(about: Host = H200) -> None:
    card = {"memory_bytes": 141 << 30, "capability": [9, 0], "count": 1}
    hosts.note({"queue": "gpu.h200", "about": msgspec.to_builtins(about), "gpu": card})


def test_without_any_it_says_how_one_joins(owner):
    assert "No evaluator has said yet" in owner.get("/hosts/").content.decode()


def test_a_host_says_what_it_is(owner):
    announce()
    page = owner.get("/hosts/").content.decode()
    for told in ("NVIDIA H200", "driver 580.82, torch 2.11.0, triton 3.6.0", "4.13\u00a0TB/s", "780\u00a0Tflop/s"):
        assert told in page
    assert "cannot give: a limit on its memory" in page
    assert "3 waiting" in page
    assert "by size" not in page


def test_the_peaks_of_a_core_are_listed_by_size(owner):
    peaks = {"copy_bytes_per_s": 19e9, "copy_at_67108864_bytes_per_s": 19e9}
    peaks |= {"copy_at_16384_bytes_per_s": 4.09e11, "read_at_16384_bytes_per_s": 1.15e11}
    announce(msgspec.structs.replace(H200, peaks=peaks))
    page = owner.get("/hosts/").content.decode()
    rows = page.split("by size")[1].split("</table>")[0]
    cells = ("16 KiB", "409\u00a0GB/s", "115\u00a0GB/s", "64 MiB", "19\u00a0GB/s", "not measured")
    places = [rows.index(cell) for cell in cells]
    assert places == sorted(places)


def test_a_change_of_versions_is_shown_with_what_was_before(owner):
    announce()
    announce(msgspec.structs.replace(H200, versions={**H200.versions, "torch": "2.12.0"}))
    assert "before: driver 580.82, torch 2.11.0, triton 3.6.0" in owner.get("/hosts/").content.decode()


def test_what_no_longer_holds_is_on_home(owner, campaign):
    attempt = make_attempt(campaign, "kept", title="the fast one")
    approve(owner, attempt)
    from campaigns.library import shelf

    shelf.collect()
    assert "no longer holding" not in owner.get("/").content.decode()
    Remeasurement.objects.create(
        attempt=attempt, cause="versions", versions="torch 2.12.0", ticket="t", state="done", holds=False,
        reason="incorrect: wrong in fresh draws", ended_at=timezone.now(),
    )  # fmt: skip
    page = owner.get("/").content.decode()
    assert "no longer holding" in page
    assert "wrong in fresh draws" in page


def test_an_outsider_sees_no_host(outsider):
    assert outsider.get("/hosts/").status_code == 302
