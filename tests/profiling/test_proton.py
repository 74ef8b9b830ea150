"""Triton Proton's call trees."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiling.importers import Refused
from tests.profiling.traces_made import run


def node(name: str, *children: Any, **metrics: Any) -> dict[str, Any]:
    named = {key.replace("time_ns", "time (ns)"): value for key, value in metrics.items()}
    return {"children": list(children), "frame": {"name": name, "type": "function"}, "metrics": named}


TREE = [
    node(
        "ROOT",
        node(
            "layer0",
            node("gemm", node("matmul_kernel", time_ns=4000, count=2, device_id="0"), flops16=1e9),
            node("norm", node("rmsnorm_kernel", time_ns=1000, count=1, device_id="0")),
        ),
        node("matmul_kernel", time_ns=5000, count=1, device_id="0"),
    ),
    {"CUDA": {"0": {"arch": "90", "num_sms": 132}}},
]


def test_kernels_have_their_launches_and_times(tmp_path: Path) -> None:
    report, _ = run(TREE, tmp_path)
    assert report["format"] == "proton"
    assert report["kernels"] == 4
    top = [(k["name"], k["calls"], k["total_ns"]) for k in report["top_kernels"]]
    assert top == [("matmul_kernel", 3, 9000), ("rmsnorm_kernel", 1, 1000)]
    assert report["top_kernels"][0]["share"] == 0.9


def test_there_is_no_step_time_and_no_busy_share(tmp_path: Path) -> None:
    report, _ = run(TREE, tmp_path)
    assert report["span_ns"] is None
    assert report["devices"] == [
        {"busy_share": None, "busy_ns": None, "span_ns": None, "id": 0, "name": "CUDA sm_90", "events": 4}
    ]
    assert any("no timeline" in note for note in report["notes"])
    assert "matmul_kernel takes 90.0 %" in report["label_title"]


def test_scopes_are_drawn_as_a_flame_graph(tmp_path: Path) -> None:
    _, found = run(TREE, tmp_path)
    names = [found.store.name(int(n)) for n in found.nvtx["name"]]
    drawn = dict(zip(names, zip(found.nvtx["start"].tolist(), found.nvtx["end"].tolist(), strict=True), strict=True))
    assert drawn == {"layer0": (0, 5000), "gemm": (0, 4000), "norm": (4000, 5000)}
    assert found.gpu["end"].tolist() == [2000, 4000, 5000, 10_000]


@pytest.mark.parametrize(("metric", "factor"), [("time (us)", 1e3), ("Time (ms)", 1e6), ("time (s) (inc)", 1e9)])
def test_times_of_any_unit_count(metric: str, factor: float, tmp_path: Path) -> None:
    tree = [{"frame": {"name": "ROOT"}, "metrics": {}, "children": [node("k", **{metric: 2, "count": 1})]}]
    assert run(tree, tmp_path)[0]["top_kernels"][0]["total_ns"] == 2 * factor


def test_many_launches_are_drawn_as_few_and_counted_as_many(tmp_path: Path) -> None:
    report, found = run([node("ROOT", node("k", time_ns=10**9, count=10**6))], tmp_path)
    assert report["kernels"] == 10**6
    assert int((found.gpu["end"] - found.gpu["start"]).sum()) == 10**9
    assert len(found.gpu["start"]) == 200


def test_a_deep_tree_imports(tmp_path: Path) -> None:
    deep = node("k", time_ns=7, count=1)
    for level in range(200):
        deep = node(f"scope{level}", deep)
    report, found = run([deep], tmp_path)
    assert report["top_kernels"][0]["total_ns"] == 7
    assert len(found.nvtx["start"]) == 200


def test_a_tree_deeper_than_any_program_is_refused(tmp_path: Path) -> None:
    levels = 100_000
    deep = b'[{"children":' * levels + b"[]" + b',"frame":{"name":"s"}}]' * levels
    with pytest.raises(Refused, match="recursion"):
        run(deep, tmp_path)


def test_a_tree_without_times_says_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"without times \(its metrics: count, flops16\)"):
        run([node("ROOT", node("k", count=3, flops16=5))], tmp_path)


def test_a_cut_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="damaged Proton call tree"):
        run(json.dumps(TREE)[:-40], tmp_path)


def test_a_tree_in_gzip_imports(tmp_path: Path) -> None:
    report, _ = run(gzip.compress(json.dumps(TREE).encode()), tmp_path)
    assert report["kernels"] == 4


def test_odd_nodes_do_no_harm(tmp_path: Path) -> None:
    odd: list[Any] = [node("ROOT", node("k", time_ns=5, count=-3, device_id={}), None, 5, {"frame": 3}, {"frame": {}})]
    odd[0]["children"][0]["metrics"]["time (ns)"] = 5
    report, _ = run([*odd, "x", {"CUDA": 4, "HIP": {"a": 1}}], tmp_path)
    assert report["kernels"] == 1


def test_a_node_with_children_may_have_a_time_of_its_own(tmp_path: Path) -> None:
    parent = node("outer", node("inner", time_ns=30, count=1), time_ns=12, count=1)
    report, found = run([node("ROOT", parent)], tmp_path)
    assert {k["name"]: k["total_ns"] for k in report["top_kernels"]} == {"inner": 30, "outer": 12}
    assert found.nvtx["end"].tolist() == [42]


def test_names_of_older_versions_are_understood(tmp_path: Path) -> None:
    leaf = {"frame": {"name": "k"}, "metrics": {"Time (ns)": 10, "Count": 2, "DeviceId": "1"}, "children": []}
    report, _ = run([{"frame": {"name": "ROOT"}, "metrics": {}, "children": [leaf]}], tmp_path)
    assert (report["kernels"], report["devices"][0]["id"]) == (2, 1)
