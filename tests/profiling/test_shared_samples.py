"""Real captures against figures that were computed independently of this project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiling.importers import import_profile
from profiling.store import Store
from tests.profiling.conftest import SHARED

PUBLIC = SHARED / "public"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")
EXPECTED: dict[str, Any] = json.loads((PUBLIC / "EXPECTED.json").read_text())["nsys"] if SHARED.is_dir() else {}
TABLES = {"CUPTI_ACTIVITY_KIND_RUNTIME": "api", "CUPTI_ACTIVITY_KIND_MEMCPY": "copy", "NVTX_EVENTS": "nvtx"}
TABLES |= {"CUPTI_ACTIVITY_KIND_KERNEL": "kernel", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph"}
TABLES |= {"CUPTI_ACTIVITY_KIND_MEMSET": "memset", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "sync"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_public_capture_has_the_expected_figures(name: str, tmp_path: Path) -> None:
    want = EXPECTED[name]
    report = import_profile(PUBLIC / name, tmp_path / "store").report
    assert report["schema"] == want["schema"]
    assert want["nsys"] in report["producer"]
    for table, kind in TABLES.items():
        assert report["events"][kind] == want["counts"].get(table, 0), table
    for device in report["devices"]:
        figures = want["devices"][str(device["id"])]
        assert device["events"] == figures["events"]
        assert device["span_ns"] == figures["span_ns"]
        assert device["busy_ns"] == figures["busy_union_ns"]
        assert round(100 * (1 - device["busy_share"]), 2) == figures["idle_pct"]
    top = [[k["name"], k["calls"], k["total_ns"]] for k in report["top_kernels"][: len(want["top_kernels"])]]
    assert top == want["top_kernels"]


@pytest.mark.parametrize("name", EXPECTED)
def test_launches_match_in_number(name: str, tmp_path: Path) -> None:
    import_profile(PUBLIC / name, tmp_path / "store")
    store = Store(tmp_path / "store")
    kernels = store.column("kind")[store.column("gpu_event")] == 0
    assert int((store.column("gpu_launch")[kernels] >= 0).sum()) == EXPECTED[name]["launch"]["matched"]


def test_the_graph_granularity_capture_is_busy(tmp_path: Path) -> None:
    report = import_profile(SHARED / "h200" / "decode_h200_graph_granularity.sqlite", tmp_path / "store").report
    assert report["events"]["graph"] == 3
    assert 0.08 < report["devices"][0]["busy_share"] < 0.1


def test_two_processes_on_two_gpus_keep_their_lanes(tmp_path: Path) -> None:
    report = import_profile(SHARED / "h200" / "tp2_h200x2.sqlite", tmp_path / "store").report
    store = Store(tmp_path / "store")
    assert report["kernels"] == 80
    assert {lane.device for lane in store.lanes if lane.kind == "gpu"} == {0, 1}
    assert any("NVTX NCCL" in lane.label for lane in store.lanes)
    assert {f["rule"] for f in report["findings"]} == {"pageable-copy", "communication", "host-sync"}
