"""Whatever bytes come, an import reads them or refuses them in words. Bounded: examples, size, and time per example."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.child import run_import
from profiling.importers import Limits, Refused, import_profile
from profiling.store import Store
from tests.profiling.captures import COLUMNS, Export

BOUNDED = settings(
    max_examples=40, deadline=timedelta(seconds=20), suppress_health_check=list(HealthCheck), derandomize=True
)
HEADS = [b"", b"SQLite format 3\x00", b"NVR\x00", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08", b'{"traceEvents":[', b"[{"]
MOST = 1 << 62
NUMBERS = st.one_of(st.none(), st.integers(-MOST, MOST), st.floats(), st.text(max_size=8), st.binary(max_size=8))


def refused_well(refused: Refused, store: Path) -> None:
    assert refused.error
    assert refused.hint
    assert not store.exists()


def survives(content: bytes) -> dict[str, Any] | None:
    """The report of importing the bytes, or None where they were refused with an error and a hint."""
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder) / "upload", Path(folder) / "store"
        file.write_bytes(content)
        try:
            report = import_profile(file, store, limits=Limits(seconds=15)).report
        except Refused as refused:
            return refused_well(refused, store)
        opened = Store(store)
        json.dumps(opened.window(opened.meta["start_ns"], opened.meta["end_ns"] + 1, 300))
        json.dumps(report)
        return report


@BOUNDED
@given(st.sampled_from(HEADS), st.binary(max_size=4096))
def test_any_bytes_are_read_or_refused(head: bytes, rest: bytes) -> None:
    survives(head + rest)


ROWS = st.lists(st.dictionaries(st.sampled_from(["start", "end", "streamId", "correlationId", "shortName"]), NUMBERS))


@BOUNDED
@given(ROWS)
def test_an_export_with_any_values_is_read_or_refused(rows: list[dict[str, Any]]) -> None:
    export = Export()
    for row in rows[:50]:
        export.add("CUPTI_ACTIVITY_KIND_KERNEL", **row)
    with tempfile.TemporaryDirectory() as folder:
        survives(export.write(Path(folder) / "x.sqlite").read_bytes())


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-MOST, MOST), st.floats(), st.text(max_size=12)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.lists(
    st.dictionaries(st.sampled_from(["ph", "name", "ts", "dur", "pid", "tid", "cat", "args", "id"]), JSON), max_size=20
)


@BOUNDED
@given(EVENTS)
def test_a_trace_with_any_events_is_read_or_refused(events: list[dict[str, Any]]) -> None:
    survives(json.dumps({"traceEvents": events}).encode())


@pytest.mark.parametrize("depth", [50, 5_000, 200_000])
def test_nested_json_is_read_or_refused(depth: int) -> None:
    survives(b'{"traceEvents":' + b"[" * depth + b"]" * depth + b"}")


def test_views_and_triggers_of_a_file_do_nothing(tmp_path: Path) -> None:
    export = Export().kernel("k", 10, 20)
    export.extra_sql = [
        "CREATE TABLE hit (n INT)",
        "CREATE TRIGGER t INSERT ON CUPTI_ACTIVITY_KIND_KERNEL BEGIN INSERT INTO hit VALUES (1); END",
        "CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x AS start, x AS end, x AS globalTid, x AS correlationId, x AS nameId FROM n",
    ]
    file = export.write(tmp_path / "v.sqlite")
    before = file.read_bytes()
    with pytest.raises(Refused, match="is a view"):
        import_profile(file, tmp_path / "store")
    assert file.read_bytes() == before
    assert sqlite3.connect(file).execute("SELECT count(*) FROM hit").fetchone() == (0,)


@pytest.mark.parametrize("column", ["rowid", "_rowid_", "oid"])
def test_a_column_that_poses_as_the_row_number_does_not_hang_an_import(column: str, tmp_path: Path) -> None:
    file = tmp_path / "posing.sqlite"
    with sqlite3.connect(Export().write(file)) as database:
        database.execute(f"CREATE TABLE NVTX_EVENTS ({COLUMNS['NVTX_EVENTS']}, {column} TEXT)")
        for number in range(9):
            values = (number, number + 5, 59, "x", 7 - number % 2)
            sql = f"INSERT INTO NVTX_EVENTS (start, end, eventType, text, {column}) VALUES (?, ?, ?, ?, ?)"
            database.execute(sql, values)
    survives(file.read_bytes())


def test_memory_beyond_the_limit_ends_the_child_alone(tmp_path: Path) -> None:
    file = Export().range("x", 1, 2).write(tmp_path / "names.sqlite")
    with sqlite3.connect(file) as database:
        rows = ((n, n + 1, 59, f"{n:04000d}") for n in range(30_000))
        database.executemany("INSERT INTO NVTX_EVENTS (start, end, eventType, text) VALUES (?, ?, ?, ?)", rows)
    with pytest.raises(Refused, match="memory") as refused:
        run_import(file, tmp_path / "store", file.name, 60, 300 << 20, lambda percent, phase: True)
    assert "PROFILE_IMPORT_MEMORY_BYTES" in refused.value.hint
    assert not (tmp_path / "store").exists()
