"""Read tables of a SQLite file that somebody else wrote, without trusting it.

Read-only and immutable (no journal is replayed, no lock file written), ``trusted_schema`` off, values as integers by
explicit casts, only real tables, columns by name, a time limit inside every statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from profiling.events import Table, clean
from profiling.importers.limits import Limits, Refused
from profiling.importers.sqlite_pages import Pages, Unusual, Wanted

CHUNK_ROWS = 1 << 18
NULL = np.iinfo(np.int64).min
"""What SQL's NULL becomes in a column that has no other default."""

Values = NDArray[np.int64]
Column = tuple[Sequence[str], int]
"""Names that a column has had over the schemas, first one found wins; and the value where there is none."""


@dataclass(frozen=True)
class Layout:
    """How a table lies in the file: its root page, all its columns in order, the places of those in its primary key."""

    root: int
    columns: list[str]
    keys: frozenset[int]


@dataclass(frozen=True)
class Odd:
    """Values of a column that are of another type than they should be: how many, and the smallest of them as text."""

    column: str
    type: str
    rows: int
    example: str

    def __str__(self) -> str:
        shown = "" if self.type == "blob" else f" (such as “{clean(self.example)[:40]}”)"
        return f"column {self.column} is {self.type} in {self.rows:,} row{'s' * (self.rows != 1)}{shown}"


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
            schema = self.connection.execute("SELECT name, type, sql, rootpage FROM sqlite_master").fetchall()
        self.asked_by_sql: set[str] = set()
        self.others = {str(name): str(kind) for name, kind, *_ in schema if kind != "table"}
        self.tables: dict[str, set[str]] = {}
        self._layouts: dict[str, Layout] = {}
        self._functions: dict[str, Callable[[object], int]] = {}
        for name, kind, sql, root in schema:
            if kind == "table" and not str(sql).upper().lstrip().startswith("CREATE VIRTUAL"):
                self._describe(str(name), root)

    def close(self) -> None:
        self.connection.close()

    def _describe(self, table: str, root: object) -> None:
        with self.reading(table):
            columns = self.connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
        self.tables[table] = {str(name) for _, name, *_, hidden in columns if not hidden}
        if isinstance(root, int) and not any(hidden for *_, hidden in columns):
            keys = frozenset(place for place, (*_, key, _) in enumerate(columns) if key)
            self._layouts[table] = Layout(root, [str(column[1]) for column in columns], keys)

    def register(self, name: str, function: Callable[[object], int]) -> None:
        """Make ``name(column)`` usable in columns of ``integers``: a number for each text (str or UTF-8 bytes)."""
        self._functions[name] = function
        self.connection.create_function(name, 1, function)

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
        with self.reading(table):
            for read in (self._from_pages, self._from_sql):
                try:
                    return self._gathered(table, list(columns), read(table, list(columns.values())), progress)
                except Unusual:
                    continue
        raise AssertionError("SQL reads every table")

    def _gathered(
        self,
        table: str,
        names: list[str],
        parts: Iterator[tuple[list[Values], float]],
        progress: Callable[[float], None],
    ) -> Table:
        chunks: list[list[Values]] = []
        seen = 0
        for chunk, share in parts:
            chunks.append(chunk)
            seen += len(chunk[0])
            progress(share)
            self._check_size(table, seen)
        columns = [[chunk[at] for chunk in chunks] for at in range(len(names))]
        return {name: np.concatenate([np.empty(0, np.int64), *columns.pop(0)]) for name in names}

    def _from_pages(self, table: str, columns: Sequence[Column]) -> Iterator[tuple[list[Values], float]]:
        """Batches of columns, decoded by NumPy.

        :raises Unusual: where SQLite has to be asked.
        """
        layout = self._layouts.get(table)
        wanted = [self._wanted(layout, *column) for column in columns] if layout else []
        present = [one for one in wanted if isinstance(one, Wanted)]
        if layout is None or not present:
            raise Unusual("it has hidden columns, or none of the wanted ones")
        for batch, share in Pages(self.path).columns(layout.root, len(layout.columns), present):
            arrays = iter(batch)
            rows = len(batch[0])
            yield [next(arrays) if isinstance(one, Wanted) else np.full(rows, one) for one in wanted], share

    def _wanted(self, layout: Layout, candidates: Sequence[str], default: int) -> Wanted | int:
        """The place of the first candidate that the table has; the default where it has none."""
        for candidate in candidates:
            function, _, inside = candidate.partition("(")
            column = inside.rstrip(")") or function
            if column in layout.columns:
                place = layout.columns.index(column)
                if place in layout.keys:
                    raise Unusual("a primary key may be the row's number, which stands elsewhere")
                return Wanted(place, default, self._functions[function] if inside else None)
        return default

    def _from_sql(self, table: str, columns: Sequence[Column]) -> Iterator[tuple[list[Values], float]]:
        """Columns of CHUNK_ROWS rows at a time, each joined to one text by SQLite and parsed by NumPy.

        A row at a time through the sqlite3 module costs twice as much: it makes an object of every value.
        """
        self.asked_by_sql.add(table)
        expected, seen = self._last_rowid(table), 0
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
            seen += count
            yield values, min(1.0, seen / max(expected, 1))

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
                if default == NULL:  # a time: what is no whole number is told by ``odd_values``, and not cast into one
                    return f"CASE WHEN {whole(name)} THEN CAST({name} AS INTEGER) ELSE {default} END"
                return f"CAST(IFNULL({name}, {default}) AS INTEGER)"
        return f"CAST({default} AS INTEGER)"

    def odd_values(self, table: str, columns: Sequence[str]) -> list[Odd]:
        """What of ``columns`` is no whole number. Costs nothing for a table whose pages were read: there all are."""
        if table not in self.asked_by_sql:
            return []
        found = []
        with self.reading(table):
            for column in (c for c in columns if c in self.tables[table]):
                name = quoted(column)
                sql = (
                    f"SELECT typeof({name}), count(*), CAST(substr(min({name}), 1, 40) AS TEXT) FROM {quoted(table)} NOT INDEXED "
                    f"WHERE {name} IS NOT NULL AND NOT ({whole(name)}) GROUP BY 1"
                )
                found += [Odd(column, *row) for row in self.connection.execute(sql)]
        return found


def whole(name: str) -> str:
    """SQL: whether a value is a whole number, be it written as text or as a float."""
    return (
        f"CASE typeof({name}) WHEN 'integer' THEN 1 WHEN 'real' THEN CAST({name} AS INTEGER) = {name} "
        f"WHEN 'text' THEN CAST(CAST({name} AS INTEGER) AS TEXT) = {name} ELSE 0 END"
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
