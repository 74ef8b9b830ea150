"""Nsight Compute's container and wire format, whole and broken."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.importers import Limits, Refused, import_profile
from profiling.importers.ncu_container import Container
from profiling.importers.ncu_results import Launch, read_launch
from profiling.importers.protobuf_wire import WireError, fields
from profiling.ncu.labels import label
from profiling.ncu.metrics import Metrics, unit
from profiling.ncu.store import Launches
from tests.profiling.conftest import ROOT, SHARED
from tests.profiling.reports_made import Report, message, sized

OWN = ROOT / "tests" / "data" / "profiles" / "triton_default.ncu-rep"
FULL = SHARED / "h200" / "triton_full.ncu-rep"
ESMM = SHARED / "public" / "esmm" / "profile.ncu-rep"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")


def launches_of(path: Path) -> list[Launch]:
    with path.open("rb") as file:
        container = Container(file, path.stat().st_size, Limits())
        return [read_launch(entry.data, container.strings) for entry in container.entries(("result",))]


def imported(content: bytes, folder: Path) -> tuple[dict[str, Any], Launches]:
    file = folder / "made.ncu-rep"
    file.write_bytes(content)
    report = import_profile(file, folder / "store").report
    return report, Launches(folder / "store")


@pytest.mark.parametrize("path", [OWN, pytest.param(FULL, marks=needs_shared), pytest.param(ESMM, marks=needs_shared)])
def test_every_metric_is_what_nvidias_own_reader_says(path: Path) -> None:
    reader = pytest.importorskip("ncu_report", reason="the package ncu-report is not installed")
    theirs = reader.load_report(str(path)).range_by_idx(0)
    ours = launches_of(path)
    assert len(ours) == theirs.num_actions()
    for index, launch in enumerate(ours):
        action = theirs.action_by_idx(index)
        wanted = {}
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            if metric.has_value() and metric.value() == metric.value():
                wanted[name] = metric.value()
                assert unit(name) in ("", metric.unit()), name
        assert launch.metrics == wanted
        assert launch.name == action.name(action.NameBase_FUNCTION)


@needs_shared
@pytest.mark.parametrize("index", range(11))
def test_a_public_report_has_the_expected_figures_and_labels(index: int) -> None:
    want = json.loads((SHARED / "public" / "EXPECTED.json").read_text())["ncu"]["esmm/profile.ncu-rep"][index]
    launch = launches_of(ESMM)[index]
    assert launch.name == want["name"]
    for name, value in want.items():
        if "__" in name:
            assert launch.metrics[name] == pytest.approx(value, rel=1e-12), name
    found = label(Metrics(launch.metrics))
    assert found.short == want["verdict"].partition("/")[0]
    assert found.small_grid == ("small grid" in want["verdict"])


def test_our_own_report_imports_with_its_label(tmp_path: Path) -> None:
    report, launches = imported(OWN.read_bytes(), tmp_path)
    assert (report["format"], report["gpus"], report["kernels"]) == ("ncu-rep", ["NVIDIA H200"], 7)
    assert report["producer"] == "Nsight Compute 2025.3.1.0"
    assert report["label"] == "memory-bound"
    assert report["span_ns"] is None
    assert report["devices"][0]["busy_share"] is None
    assert report["top_kernels"][0] == {
        "name": "matmul_kernel",
        "full_name": "",
        "calls": 2,
        "total_ns": 1_932_640,
        "mean_ns": 966_320.0,
        "share": 0.546477,
    }
    assert len(launches.details(0)["metrics"]) == 563
    assert launches.launches[0]["nvtx"] == ["layer0", "gemm_good"]


def test_host_and_command_line_reach_neither_report_nor_store(tmp_path: Path) -> None:
    imported(OWN.read_bytes(), tmp_path)
    raw = OWN.read_bytes()
    for secret in (b"192.0.2.2", b"--clock-control", b"/srv/demo"):
        assert secret in raw
        for file in (tmp_path / "store").iterdir():
            assert secret not in file.read_bytes()
        launches = Launches(tmp_path / "store")
        assert all(secret.decode() not in json.dumps(launches.details(i)) for i in range(7))


@needs_shared
def test_hot_lines_have_their_source_text(tmp_path: Path) -> None:
    _, launches = imported(FULL.read_bytes(), tmp_path)
    lines = launches.details(0)["lines"]
    assert lines[0]["file"] == "ncu_small.py"
    assert "tl.dot" in lines[0]["text"]
    assert sum(line["samples"] for line in lines) == launches.details(0)["metrics"]["smsp__pcsamp_sample_count"]


def test_names_may_stand_in_a_later_block(tmp_path: Path) -> None:
    made = Report()
    result = made.launch("k", {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 4})
    _, launches = imported(made.simple(result), tmp_path)
    assert launches.details(0)["metrics"] == {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 4}


def test_unknown_fields_are_passed_over(tmp_path: Path) -> None:
    made = Report()
    new = message((99, "from the future"), (100, 5), (101, 2.5))
    _, launches = imported(made.simple(made.launch("k", {"a": 1}, extra=new)), tmp_path)
    assert launches.details(0)["metrics"] == {"a": 1}


def test_a_metric_without_a_value_is_not_a_zero(tmp_path: Path) -> None:
    made = Report()
    made.number("empty")
    extra = message((13, message((1, 0), (2, b""))), (13, message((1, 0), (2, message((3, float("nan")))))))
    _, launches = imported(made.simple(made.launch("k", {}, extra=extra)), tmp_path)
    assert launches.details(0)["metrics"] == {}


def test_a_report_without_kernels_says_so(tmp_path: Path) -> None:
    report, launches = imported(Report().simple(), tmp_path)
    assert report["label"] == "no kernels captured"
    assert launches.launches == []


@pytest.mark.parametrize("version", [1, 6, 8, 90])
def test_another_version_is_refused_by_number(version: int, tmp_path: Path) -> None:
    made = Report(version)
    with pytest.raises(Refused, match=f"format version {version}; version 7"):
        imported(made.simple(made.launch("k", {"a": 1})), tmp_path)


def test_a_compressed_report_is_read_like_a_plain_one(tmp_path: Path) -> None:
    report, launches = imported(zstandard.compress(OWN.read_bytes()), tmp_path)
    assert (report["format"], report["kernels"]) == ("ncu-repz", 7)
    assert len(launches.details(6)["metrics"]) == 563


def test_zstandard_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no compressed Nsight Compute report"):
        imported(zstandard.compress(b"hello" * 100), tmp_path)


@pytest.mark.parametrize("share", [0.00002, 0.001, 0.3, 0.62, 0.9, 0.9999])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_cut_report_is_refused_with_where(share: float, compressed: bool, tmp_path: Path) -> None:
    raw = OWN.read_bytes()
    raw = zstandard.compress(raw) if compressed else raw
    with pytest.raises(Refused, match=r"cut|damaged|not a profile") as refused:
        imported(raw[: max(4, int(len(raw) * share))], tmp_path)
    assert refused.value.hint


def test_metrics_that_name_nothing_are_damage(tmp_path: Path) -> None:
    made = Report()
    result = made.launch("k", {}, extra=message((13, message((1, 77), (2, message((5, 3)))))))
    with pytest.raises(Refused, match="1 metrics refer to names"):
        imported(made.simple(result), tmp_path)


def test_a_block_that_promises_more_than_it_holds_is_damage(tmp_path: Path) -> None:
    header = message((1, 0), (2, 3), (5, 0))
    with pytest.raises(Refused, match="promises 3 entries and holds 0"):
        imported(b"NVR\0" + sized(message((1, 7))) + sized(header), tmp_path)


def test_an_entry_larger_than_its_block_is_damage(tmp_path: Path) -> None:
    payload = struct.pack("<I", 1 << 31) + b"x" * 20
    header = message((2, 1), (5, len(payload)))
    with pytest.raises(Refused, match="states 2,147,483,648 bytes"):
        imported(b"NVR\0" + sized(message((1, 7))) + sized(header) + payload, tmp_path)


@pytest.mark.parametrize(
    "raw", [b"\x0a\xff", b"\x80", b"\x0b", b"\x00\x01", b"\xff" * 12, b"\x0d\x01", b"\x09\x01\x02"]
)
def test_bytes_that_are_no_message_are_an_error(raw: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(memoryview(raw)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 200_000), st.binary(min_size=1, max_size=6))
def test_mutilated_reports_import_or_are_refused(tmp_path: Path, at: int, change: bytes) -> None:
    made = Report()
    body = {f"metric{i}": float(i) for i in range(20)}
    content = bytearray(made.simple(*(made.launch(f"k{i}", body) for i in range(3))))
    at = 4 + at % (len(content) - 4)
    content[at : at + len(change)] = change
    said = ["imported"]
    try:
        imported(bytes(content), tmp_path)
    except Refused as refused:
        said = [refused.error, refused.hint]
    assert all(said)
