"""Read tables of a SQLite file that somebody else wrote, without trusting it.

Read-only and immutable (no journal is replayed, no lock file written), ``trusted_schema`` off, values as integers by
explicit casts, only real tables, columns by name, a time limit inside every statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from profiling.events import Table
from profiling.importers.limits import Limits, Refused

CHUNK_ROWS = 1 << 18
NULL = np.iinfo(np.int64).min
"""What SQL's NULL becomes in a column that has no other default."""

Values = NDArray[np.int64]
Column = tuple[Sequence[str], int]
"""Names that a column has had over the schemas, first one found wins; and the value where there is none."""


class Export:
    """An open `nsys export` database."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self.limits = path, limits
        self.connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        self.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 64 << 20)
        self.connection.set_progress_handler(lambda: int(limits.expired()), 100_000)
        with self.reading("the list of tables"):
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "temp_store=MEMORY"):
                self.connection.execute(f"PRAGMA {pragma}")
            schema = self.connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        self.others = {str(name): str(kind) for name, kind, _ in schema if kind != "table"}
        self.tables: dict[str, set[str]] = {}
        for name, kind, sql in schema:
            if kind == "table" and not str(sql).upper().lstrip().startswith("CREATE VIRTUAL"):
                self.tables[str(name)] = self._columns(str(name))

    def close(self) -> None:
        self.connection.close()

    def _columns(self, table: str) -> set[str]:
        with self.reading(table):
            return {str(row[1]) for row in self.connection.execute(f"PRAGMA table_info({quoted(table)})")}

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into words: what was being read, and what to do."""
        try:
            yield
        except (sqlite3.Error, ValueError, OverflowError) as error:
            self.limits.check()
            raise Refused(
                f"a damaged SQLite file: reading {what} failed ({error})",
                "Copy the file again, or repeat the export: `nsys export --type sqlite FILE.nsys-rep`.",
                format="nsys-sqlite",
            ) from error

    def has(self, table: str) -> bool:
        if self.others.get(table) == "view":
            raise Refused(
                f"{table} is a view in this file, where an Nsight Systems export has a table",
                "Upload the file as `nsys export` wrote it.",
                format="nsys-sqlite",
            )
        return table in self.tables

    def texts(self, table: str, columns: Sequence[str], where: str = "") -> list[tuple[object, ...]]:
        """Rows of a small table; empty where the table or a column is absent."""
        if not self.has(table) or not set(columns) <= self.tables[table]:
            return []
        wanted = ", ".join(quoted(column) for column in columns)
        with self.reading(table):
            sql = f"SELECT {wanted} FROM {quoted(table)} NOT INDEXED {where} LIMIT 1000000"
            return self.connection.execute(sql).fetchall()

    def integers(
        self, table: str, columns: dict[str, Column], progress: Callable[[float], None] = lambda share: None
    ) -> Table:
        """Columns of ``table`` as int64 arrays; length 0 where the table is absent, the default where a column is.

        :param progress: called with the share (0–1) of the table that is read.
        """
        if not self.has(table):
            return {name: np.empty(0, np.int64) for name in columns}
        chunks: list[list[Values]] = []
        with self.reading(table):
            expected, seen = self._last_rowid(table), 0
            for chunk in self._chunks(table, list(columns.values())):
                chunks.append(chunk)
                seen += len(chunk[0])
                progress(min(1.0, seen / max(expected, 1)))
                self._check_size(table, seen)
        result = {}
        for at, name in enumerate(columns):
            result[name] = np.concatenate([chunk[at] for chunk in chunks] or [np.empty(0, np.int64)])
        return result

    def _chunks(self, table: str, columns: Sequence[Column]) -> Iterator[list[Values]]:
        """Columns of CHUNK_ROWS rows at a time, each joined to one text by SQLite and parsed by NumPy.

        A row at a time through the sqlite3 module costs twice as much: it makes an object of every value.
        """
        inner = ", ".join(f"{self._expression(table, *column)} AS c{i}" for i, column in enumerate(columns))
        joined = ", ".join(f"CAST(group_concat(c{i}) AS BLOB)" for i in range(len(columns)))
        sql = (
            f"SELECT max(r), count(*), {joined} FROM (SELECT rowid AS r, {inner} FROM {quoted(table)} NOT INDEXED "
            f"WHERE rowid > ? ORDER BY rowid LIMIT {CHUNK_ROWS})"
        )
        last = NULL
        while True:
            reached, count, *texts = self.connection.execute(sql, (int(last),)).fetchone()
            if not count:
                return
            values = [np.fromstring(text, np.int64, sep=",") for text in texts]
            if not isinstance(reached, int) or reached <= last or {len(v) for v in values} != {count}:
                raise ValueError("its rows do not come in the order of their numbers")
            last = reached
            yield values

    def _check_size(self, table: str, rows: int) -> None:
        self.limits.check()
        if rows > self.limits.max_events:
            raise Refused(
                f"{table} has more than {self.limits.max_events:,} rows",
                "Capture a shorter window (nsys profile --duration, or cudaProfilerStart/Stop around the steps).",
                format="nsys-sqlite",
            )

    def _last_rowid(self, table: str) -> int:
        try:
            return int(self.connection.execute(f"SELECT max(rowid) FROM {quoted(table)}").fetchone()[0] or 0)
        except (sqlite3.Error, TypeError, ValueError):
            return 0

    def _expression(self, table: str, candidates: Sequence[str], default: int) -> str:
        """SQL for the first candidate that the table has. ``name(…)`` calls a registered function."""
        for candidate in candidates:
            column = candidate.partition("(")[2].rstrip(")") if "(" in candidate else candidate
            if column in self.tables[table]:
                name = quoted(column)
                if "(" in candidate:  # NULL is told in SQL: calling back into Python costs ten times as much
                    return f"CASE WHEN {name} IS NULL THEN {default} ELSE {candidate.partition('(')[0]}({name}) END"
                return f"CAST(IFNULL({name}, {default}) AS INTEGER)"
        return f"CAST({default} AS INTEGER)"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
