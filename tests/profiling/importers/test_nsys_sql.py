"""SQLite files that mean harm, or are broken."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.importers import Limits, Refused, import_profile
from tests.profiling.captures import Export
from tests.profiling.conftest import DEMO

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end FROM n"


def refused(path: Path, folder: Path, limits: Limits | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        import_profile(path, folder / "store", limits=limits)
    return caught.value


def test_a_database_of_something_else_is_named(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "f") as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    assert "no Nsight Systems export (its tables: recipes)" in refused(tmp_path / "f", tmp_path).error


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path, export: Export) -> None:
    export.range("a", 1, 2).extra_sql.append(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}")
    assert "is a view" in refused(export.write(tmp_path / "f"), tmp_path).error


def test_views_and_triggers_that_are_not_needed_do_no_harm(tmp_path: Path, export: Export) -> None:
    export.kernel("a", 10, 20)
    export.extra_sql += [
        f"CREATE VIEW everything AS {ENDLESS}",
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; END",
    ]
    assert import_profile(export.write(tmp_path / "f"), tmp_path / "store").report["kernels"] == 1


def test_the_time_limit_holds_inside_a_statement(tmp_path: Path) -> None:
    limits = Limits(seconds=0.0, started=time.monotonic() - 1)
    assert "longer than its limit" in refused(DEMO, tmp_path, limits).error


def test_too_many_rows_are_refused(tmp_path: Path) -> None:
    assert "more than 1,000 rows" in refused(DEMO, tmp_path, Limits(max_events=1000)).error


def test_an_import_leaves_the_file_and_its_folder_alone(tmp_path: Path, export: Export) -> None:
    path = export.kernel("a", 10, 20).write(tmp_path / "f.sqlite")
    before = path.read_bytes()
    import_profile(path, tmp_path / "elsewhere" / "store")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "f.sqlite"]


def test_odd_characters_in_a_path_are_no_sql_uri(tmp_path: Path, export: Export) -> None:
    path = export.kernel("a", 10, 20).write(tmp_path / "a?mode=rw#%41.sqlite")
    assert import_profile(path, tmp_path / "store").report["kernels"] == 1


def test_values_of_the_wrong_type_do_not_end_the_import(tmp_path: Path, export: Export) -> None:
    export.kernel("a", 10, 20).kernel("b", 30, 40, gridX="many", registersPerThread=1.5, streamId=b"\x01")
    assert import_profile(export.write(tmp_path / "f"), tmp_path / "store").report["kernels"] == 2


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(100, 1_490_943), st.binary(min_size=1, max_size=64)), min_size=1, max_size=20))
def test_a_damaged_export_is_read_or_refused_but_never_crashes(
    tmp_path: Path, damages: list[tuple[int, bytes]]
) -> None:
    content = bytearray(DEMO.read_bytes())
    for at, noise in damages:
        content[at : at + len(noise)] = noise
    (tmp_path / "f").write_bytes(content)
    said = "imported"
    try:
        import_profile(tmp_path / "f", tmp_path / "store", limits=Limits(seconds=20))
    except Refused as error:
        said = error.hint
    assert said
