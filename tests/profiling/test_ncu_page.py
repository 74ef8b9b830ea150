"""The page of an Nsight Compute report, as the browser gets it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from profiling.models import Profile
from tests.profiling.conftest import SHARED
from tests.profiling.reports_made import Report, message
from tests.profiling.test_ncu_reader import FULL, OWN
from tests.profiling.views.conftest import client, owner, ready

__all__ = ["client", "owner"]
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")


@pytest.fixture
def report(media: Path, owner: Any) -> Profile:
    return ready(OWN, "triton_default.ncu-rep", owner, "c" * 64)


def text_of(client: Client, profile: Profile, query: str = "", **headers: str) -> str:
    answer = client.get(profile.get_absolute_url() + query, headers=headers)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


def test_kernels_are_grouped_with_their_labels(client: Client, report: Profile) -> None:
    text = text_of(client, report)
    assert "Memory-bound, saturated: matmul_kernel takes 49.2 % of the kernel time" in text
    assert re.search(r"tiny_add_kernel 1×1×1 · 128×1×1 latency-bound 3 ", text)
    assert "compute-bound , saturated" in text or "compute-bound, saturated" in text


def test_what_was_not_collected_says_what_to_rerun(client: Client, report: Profile) -> None:
    text = text_of(client, report)
    assert "Roofline not collected: rerun with ncu --section SpeedOfLight_RooflineChart" in text
    assert "Stall reasons not collected: rerun with ncu --section WarpStateStats" in text
    assert "Source hot spots not collected" in text
    assert "not collected DRAM traffic" in text


def test_a_launch_can_be_picked_by_address(client: Client, report: Profile) -> None:
    assert "32×16×1" in text_of(client, report, "?launch=0")
    part = client.get(report.get_absolute_url() + "?launch=6", headers={"HX-Request": "true"}).content.decode()
    assert "rmsnorm_kernel" in part
    assert "<html" not in part


@pytest.mark.parametrize("query", ["?launch=7", "?launch=999999999"])
def test_a_launch_that_is_not_there_is_not_found(query: str, client: Client, report: Profile) -> None:
    assert client.get(report.get_absolute_url() + query).status_code == 404


@pytest.mark.parametrize("query", ["?launch=", "?launch=x", "?launch=-1", "?launch=²"])
def test_nonsense_shows_the_heaviest_kernel(query: str, client: Client, report: Profile) -> None:
    assert "128×128×1" in text_of(client, report, query)


def test_all_metrics_can_be_searched(client: Client, report: Profile) -> None:
    url = reverse("profile_kernel_metrics", args=[report.pk, 0])
    assert client.get(url).content.decode().count("<tr>") == 1 + 563
    rows = client.get(url, {"q": "dram throughput.avg"}).content.decode()
    assert "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed" in rows
    assert rows.count("<tr>") == 2
    assert client.get(reverse("profile_kernel_metrics", args=[report.pk, 7])).status_code == 404


def test_a_timeline_has_no_kernel_metrics(client: Client, media: Path, owner: Any, report: Profile) -> None:
    (report.store_path / "ncu.json").unlink()
    assert client.get(reverse("profile_kernel_metrics", args=[report.pk, 0])).status_code == 404


def test_names_are_text(client: Client, media: Path, owner: Any, tmp_path: Path) -> None:
    made = Report()
    markup = "</script><script>alert(1)</script>"
    rule = message(
        (1, markup), (2, markup), (3, message((1, message((1, message((1, markup), (2, 4), (4, markup))))))), (4, "x")
    )
    nvtx = message((2, message((2, message((3, message((1, markup))))))))
    extra = message((19, rule), (21, nvtx))
    (tmp_path / "m.ncu-rep").write_bytes(
        made.simple(made.launch(markup, {markup: 1, "gpu__time_duration.sum": 5.0}, extra))
    )
    profile = ready(tmp_path / "m.ncu-rep", markup, owner, "d" * 64)
    pages = client.get(profile.get_absolute_url()).content.decode()
    pages += client.get(reverse("profile_kernel_metrics", args=[profile.pk, 0])).content.decode()
    assert "<script>alert" not in pages
    assert pages.count("&lt;script&gt;alert(1)") >= 4


def test_a_report_without_kernels_has_a_page(client: Client, media: Path, owner: Any, tmp_path: Path) -> None:
    (tmp_path / "m.ncu-rep").write_bytes(Report().simple())
    profile = ready(tmp_path / "m.ncu-rep", "empty", owner, "e" * 64)
    assert "No kernels captured" in text_of(client, profile)


def test_a_kernel_with_one_metric_has_a_page(client: Client, media: Path, owner: Any, tmp_path: Path) -> None:
    made = Report()
    (tmp_path / "m.ncu-rep").write_bytes(made.simple(made.launch("k", {"launch__grid_size": 4})))
    text = text_of(client, ready(tmp_path / "m.ncu-rep", "little", owner, "f" * 64))
    assert "not enough data" in text.lower()
    assert "not measured" in text


@needs_shared
def test_a_full_report_shows_roofline_stalls_and_hot_lines(client: Client, media: Path, owner: Any) -> None:
    text = text_of(client, ready(FULL, "full", owner, "1" * 64), "?launch=0")
    assert "reaches 82.5 % of it" in text
    assert "long scoreboard" in text
    assert re.search(r"ncu_small\.py:16 .*tl\.dot", text)
