"""What is read from the pages is what SQLite says of them, or SQLite is asked."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.importers.limits import Limits
from profiling.importers.nsys_sql import NULL, Export
from profiling.importers.sqlite_pages import Pages, Unusual, Wanted
from tests.profiling.conftest import DEMO

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(st.tuples(INT64 | st.none(), st.text(max_size=40) | st.none(), st.integers(-300, 300) | st.none()))


def made(path: Path, rows: list[tuple[object, ...]], page_bytes: int = 512) -> Path:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size={page_bytes}")
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


def read(path: Path, texts: list[bytes]) -> list[list[int]]:
    wanted = [Wanted(0, NULL), Wanted(1, -1, lambda text: texts.append(text) or len(texts) - 1), Wanted(2, -1)]
    batches = [batch for batch, _ in Pages(path).columns(2, 3, wanted)]
    return [np.concatenate([batch[at] for batch in batches]).tolist() if batches else [] for at in range(3)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_any_numbers_and_texts_come_out_as_they_went_in(rows: list[tuple[object, ...]], tmp_path: Path) -> None:
    texts: list[bytes] = []
    a, b, c = read(made(tmp_path / "t.sqlite", rows), texts)
    assert a == [NULL if row[0] is None else row[0] for row in rows]
    assert [None if number < 0 else texts[number].decode() for number in b] == [row[1] for row in rows]
    assert c == [-1 if row[2] is None else row[2] for row in rows]


def test_a_table_of_many_pages_and_levels(tmp_path: Path) -> None:
    rows = [(n * n * 1000, f"text {n}", n % 7) for n in range(30_000)]
    texts: list[bytes] = []
    a, b, c = read(made(tmp_path / "t.sqlite", rows), texts)
    assert (a, c) == ([row[0] for row in rows], [row[2] for row in rows])
    assert [texts[n].decode() for n in b] == [row[1] for row in rows]


@pytest.mark.parametrize(
    "row",
    [(1.5, "a", 1), ("text", "a", 1), (b"blob", "a", 1), (1, b"blob", 1), (1, "long" * 400, 1)],
    ids=["a float", "a text", "a blob", "a blob for a text", "a row on several pages"],
)
def test_what_is_unusual_is_left_to_sqlite(row: tuple[object, ...], tmp_path: Path) -> None:
    with pytest.raises(Unusual):
        read(made(tmp_path / "t.sqlite", [(1, "a", 1), row]), [])


def test_a_table_with_a_late_column_is_read_by_sqlite(tmp_path: Path) -> None:
    path = made(tmp_path / "t.sqlite", [(1, "a", 1)])
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 9")
    connection.execute("INSERT INTO t VALUES (2, 'b', 2, 3)")
    connection.commit()
    connection.close()
    export = Export(path, Limits())
    assert export.integers("t", {"d": (["d"], -1), "a": (["a"], -1)})["d"].tolist() == [9, 3]


def test_a_damaged_page_never_leads_outside_of_the_file(tmp_path: Path) -> None:
    whole = bytearray(made(tmp_path / "t.sqlite", [(n, "text", n) for n in range(400)]).read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(150):
        broken = bytearray(whole)
        for at in rng.integers(512, len(whole), 4):
            broken[at] = rng.integers(0, 256)
        (tmp_path / "b.sqlite").write_bytes(broken)
        try:
            a, _, _ = read(tmp_path / "b.sqlite", [])
        except Unusual:
            continue
        assert len(a) <= len(whole)


def test_the_demo_is_read_from_its_pages_as_sqlite_reads_it() -> None:
    export = Export(DEMO, Limits())
    columns = {"start": (["start"], NULL), "end": (["end"], NULL), "node": (["graphNodeId"], -1)}
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        by_page, by_sql = (
            [
                np.concatenate(parts)
                for parts in zip(*(batch for batch, _ in way(table, list(columns.values()))), strict=True)
            ]
            for way in (export._from_pages, export._from_sql)
        )
        assert all((one == other).all() for one, other in zip(by_page, by_sql, strict=True))
