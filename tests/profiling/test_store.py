from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from profiling import lanes, store_writer
from profiling.events import GPU_COLUMNS, Capture, concatenate
from profiling.store import MAX_BARS, Store
from profiling.trace import Trace
from tests.profiling.captures import Export

Imported = Callable[[Export], tuple[dict[str, Any], Trace]]


def heat(row: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(row["busy"]), np.uint8)


def test_a_window_shows_what_began_before_it(export: Export, imported: Imported) -> None:
    _, trace = imported(export.range("whole step", 0 + 5, 10_000).kernel("a", 4000, 4100))
    window = trace.store.window(3000, 5000, 100)
    names = {window["names"][i] for row in window["rows"] for i in row["name"]}
    assert names == {"whole step", "a"}
    assert [row["start"] for row in window["rows"]] == [[-2995], [1000]]


def test_events_that_touch_the_border_are_in_and_others_are_not(export: Export, imported: Imported) -> None:
    for at in (100, 200, 300, 400):
        export.kernel("a", at, at + 50)
    _, trace = imported(export)
    assert [row["count"] for row in trace.store.window(250, 300, 10)["rows"]] == [2]


def test_zoomed_out_it_is_busy_shares_and_zoomed_in_bars(demo_trace: Trace) -> None:
    start, end = demo_trace.span
    rows = demo_trace.store.window(start, end, 1500)["rows"]
    assert any("busy" in row for row in rows)
    assert sum(row["count"] for row in rows if "busy" not in row) <= MAX_BARS
    middle = (start + end) // 2
    assert all("busy" not in row for row in demo_trace.store.window(middle, middle + 100_000, 1500)["rows"])


def test_busy_shares_are_those_of_the_events(demo_trace: Trace) -> None:
    store = demo_trace.store
    lo, hi = demo_trace.span
    window = store.window(lo, hi, 400)
    edges = np.linspace(lo, hi, window["buckets"] + 1)
    for drawn in (row for row in window["rows"] if "busy" in row):
        row = store.rows[drawn["row"]]
        start, end = (store.column(c)[row.first : row.last] for c in ("start", "end"))
        bucket = int(heat(drawn).argmax())
        low, high = int(edges[bucket]), int(edges[bucket + 1])
        share = np.clip(np.minimum(end, high) - np.maximum(start, low), 0, None).sum() / (high - low)
        assert abs(heat(drawn)[bucket] / 255 - share) < 0.02


def test_whatever_ran_leaves_a_trace_in_the_heat(export: Export, imported: Imported) -> None:
    for i in range(2000):
        export.kernel("a", 10**9 + 1000 * i, 10**9 + 1000 * i + 10)
    export.kernel("lonely", 1, 2)
    _, trace = imported(export)
    shares = heat(trace.store.window(0, 2 * 10**9, 100)["rows"][0])
    assert shares[0] == 1


def test_a_window_of_the_demo_stays_below_150_kb(demo_trace: Trace) -> None:
    rng = np.random.default_rng(0)
    start, end = demo_trace.span
    for _ in range(50):
        lo = int(rng.integers(start, end))
        window = demo_trace.store.window(lo, lo + int(10 ** rng.uniform(2, 8.3)), 4500)
        assert len(json.dumps(window, separators=(",", ":"))) < 150_000


def test_a_hundred_overlapping_kernels_are_all_in_the_window(export: Export, imported: Imported) -> None:
    for i in range(100):
        export.kernel(f"k{i}", 1000 + i, 2000 + i)
    _, trace = imported(export)
    assert sum(row["count"] for row in trace.store.window(1500, 1600, 100)["rows"]) == 100


def test_find_goes_on_from_a_time_and_wraps(export: Export, imported: Imported) -> None:
    export.kernel("GEMM_one", 100, 110).kernel("other", 200, 210).kernel("my_gemm", 300, 310)
    _, trace = imported(export)
    names = trace.store.names_matching("gemm")
    assert len(names) == 2

    def start_after(at: int, backwards: bool = False) -> int:
        found = trace.store.find(names, at, backwards)
        assert found is not None
        return int(trace.store.column("start")[found])

    assert [start_after(0), start_after(100), start_after(300)] == [100, 300, 100]
    assert [start_after(300, True), start_after(100, True)] == [100, 300]


def test_a_name_is_not_matched_across_two_names(export: Export, imported: Imported) -> None:
    _, trace = imported(export.kernel("abc", 1, 2).kernel("def", 3, 4))
    assert len(trace.store.names_matching("cd")) == 0


def test_far_out_the_busy_share_is_read_off_the_grid_and_is_true(tmp_path: Path) -> None:
    """Pixel borders move by an eighth of a pixel at most; shares must agree with those counted event by event."""
    rng = np.random.default_rng(5)
    start = np.cumsum(rng.integers(100, 2_000, 40_000))
    end = start + rng.integers(50, 100, len(start)) * np.where(start % 3, 1, 0)
    capture = Capture(
        "made", gpu=concatenate([{"start": start, "end": end, "name": np.zeros(len(start), np.int32)}], GPU_COLUMNS)
    )
    capture.names.intern("kernel")
    store_writer.write(capture, tmp_path / "store")
    store = Store(tmp_path / "store")
    (row,) = store.rows
    edges = np.linspace(start[0] - 50_000, end[-1] + 50_000, 401).astype(np.int64)
    totals, moved = store._on_grid(row, edges)
    exact = lanes.covered(start, end, store.column("covered"), moved)
    assert (totals == exact).all()
    assert np.abs(moved - edges).max() <= row.grid_step_ns / 2 + 1
    assert row.grid_step_ns * 8 <= (edges[-1] - edges[0]) / 400
    assert np.diff(totals).sum() == (end - start).sum()
