"""Columns of a SQLite table straight from its pages, many rows at a time.

SQLite's virtual machine hands out one value at a time, which costs more than the rest of an import. Here the leaf pages
of a table are decoded by NumPy in batches, by the published file format (sqlite.org/fileformat2.html: sections 1.5
b-tree pages, 2.1 record format). Whatever is unusual (overflow pages, text where a number belongs, rows of another
length, a primary key in place of a column, any inconsistency) raises ``Unusual``, and the caller asks SQLite instead.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
INTERIOR, LEAF = 0x05, 0x0D
BATCH_BYTES = 2 << 20
"""Of pages decoded at a time: the working arrays of such a batch stay in the processor's cache."""
MAX_LEVELS = 20
SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.int64)
"""Bytes of a value by serial type; 7 is a float, 8 and 9 are the constants 0 and 1, 10 and 11 are not used."""
FLOAT, ONE, FIRST_TEXT = 7, 9, 12


class Unusual(Exception):
    """The table is not of the plain kind that can be read here; it need not be damaged."""


@dataclass(frozen=True)
class Wanted:
    """A column by its place in the table. ``intern`` makes it one of texts: each becomes the number that it gives."""

    place: int
    default: int
    intern: Callable[[bytes], int] | None = None


class Pages:
    """A database file, mapped. Nothing is read but the pages that are asked for."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.data: Bytes = np.frombuffer(self._map, np.uint8)
        self.page_bytes = int.from_bytes(self._map[16:18], "big")
        self.page_bytes = 65536 if self.page_bytes == 1 else self.page_bytes
        self.usable_bytes = self.page_bytes - self._map[20]
        encoding = int.from_bytes(self._map[56:60], "big")
        if self.page_bytes < 512 or self.page_bytes & (self.page_bytes - 1) or encoding != 1:
            raise Unusual("its pages are of an odd size, or its texts are not UTF-8")
        self.pages = len(self._map) // self.page_bytes
        # Big-endian words that begin at every byte of the file: an index into it reads eight bytes from anywhere.
        self._words = np.ndarray(max(0, len(self._map) - 7), ">i8", self._map, strides=(1,))

    def leaves(self, root: int) -> Numbers:
        """Page numbers of the table's leaves, in the order of its rows."""
        level = np.array([root], np.int64)
        for _ in range(MAX_LEVELS):
            if len(level) > self.pages or level.min() < 2 or level.max() > self.pages:
                raise Unusual("a page number lies outside of the file")
            kinds = self.data[(level - 1) * self.page_bytes]
            if (kinds == LEAF).all():
                if len(np.unique(level)) != len(level):
                    raise Unusual("a page belongs to it twice")
                return level
            if not (kinds == INTERIOR).all():
                raise Unusual("its tree is not balanced, or it has no row numbers")
            level = np.concatenate([self._children(int(page)) for page in level])
        raise Unusual("its tree is too deep")

    def _children(self, page: int) -> Numbers:
        base = (page - 1) * self.page_bytes
        cells = self._two_bytes(np.array([base + 3]))[0]
        if 12 + 2 * cells > self.usable_bytes:
            raise Unusual("a page has more cells than room")
        at = base + self._two_bytes(base + 12 + 2 * np.arange(cells))
        places = np.append(at, base + 8)  # the right-most child stands in the header
        if places.max() + 4 > base + self.page_bytes:
            raise Unusual("a cell lies outside of its page")
        parts = [self.data[places + i].astype(np.int64) << (24 - 8 * i) for i in range(4)]
        return parts[0] | parts[1] | parts[2] | parts[3]

    def _two_bytes(self, at: Numbers) -> Numbers:
        return (self.data[at].astype(np.int64) << 8) | self.data[at + 1]

    def columns(self, root: int, table_columns: int, wanted: Sequence[Wanted]) -> Iterator[tuple[list[Numbers], float]]:
        """The wanted columns, batch by batch, with the share (0–1) of the table that is read by then.

        :param table_columns: how many columns each row has to have.
        :raises Unusual: also after some batches; what was given out then is to be thrown away.
        """
        leaves = self.leaves(root)
        step = max(1, BATCH_BYTES // self.page_bytes)
        last = np.iinfo(np.int64).min
        try:
            for first in range(0, len(leaves), step):
                rows = self._rows(leaves[first : first + step])
                if len(rows.number):
                    if rows.number[0] <= last or (np.diff(rows.number) <= 0).any():
                        raise Unusual("its rows do not come in the order of their numbers")
                    last = int(rows.number[-1])
                    yield self._decode(rows, table_columns, wanted), min(1.0, (first + step) / len(leaves))
        except IndexError as error:
            raise Unusual("a value lies outside of the file") from error

    def _rows(self, leaves: Numbers) -> Rows:
        base = (leaves - 1) * self.page_bytes
        cells = self._two_bytes(base + 3)
        if (8 + 2 * cells > self.usable_bytes).any():
            raise Unusual("a page has more cells than room")
        page = np.repeat(base, cells)
        number = np.arange(len(page)) - np.repeat(np.cumsum(cells) - cells, cells)
        offset = self._two_bytes(page + 8 + 2 * number)
        at, end = page + offset, page + self.usable_bytes
        payload, at = self._varint(at)
        row, at = self._varint(at)
        if len(page) and ((payload > self.usable_bytes - 35).any() or (at + payload > end).any()):
            raise Unusual("a row is longer than a page holds")
        return Rows(row, at, payload)

    def _varint(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """Numbers of seven bits a byte, most significant first, and the places behind them."""
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.int64)
        at = at + 1
        more = np.flatnonzero(byte & 0x80)
        for _ in range(8):
            if not len(more):
                return value, at
            byte = self.data[at[more]]
            value[more] = (value[more] << 7) | (byte & 0x7F)
            at[more] += 1
            more = more[byte & 0x80 != 0]
        raise Unusual("a number has nine bytes")

    def _decode(self, rows: Rows, table_columns: int, wanted: Sequence[Wanted]) -> list[Numbers]:
        """Walk through the heads of all rows together, column by column; take out what is wanted."""
        takers: dict[int, list[int]] = {}
        for index, one in enumerate(wanted):
            takers.setdefault(one.place, []).append(index)
        found: list[Numbers] = [np.empty(0, np.int64)] * len(wanted)
        head_bytes = self.data[rows.at]
        if (head_bytes > 0x7F).any():
            raise Unusual("the head of a row is too long")
        head, value = rows.at + 1, rows.at + head_bytes
        body = value.copy()
        for place in range(table_columns):
            if (head >= body).any():
                raise Unusual("a row has fewer columns than its table")
            serial, head = self._serial(head)
            size = SIZES[np.minimum(serial, FIRST_TEXT - 1)]
            if serial.max(initial=0) >= FIRST_TEXT:
                size = np.where(serial >= FIRST_TEXT, (serial.astype(np.int64) - FIRST_TEXT) >> 1, size)
            for index in takers.get(place, ()):
                read = self._texts if wanted[index].intern else self._integers
                found[index] = read(value, serial, size, wanted[index])
            value = value + size
        if (head != body).any() or (value != rows.at + rows.payload).any():
            raise Unusual("the head of a row does not add up to its length")
        return found

    def _serial(self, head: Numbers) -> tuple[NDArray[np.int64] | Bytes, Numbers]:
        byte = self.data[head]
        if byte.max(initial=0) < 0x80:
            return byte, head + 1
        serial, head = self._varint(head)
        if serial.max() > 2 * self.usable_bytes + FIRST_TEXT:
            raise Unusual("a value is longer than a page")
        return serial, head

    def _integers(self, at: Numbers, serial: NDArray[np.int64] | Bytes, size: Numbers, wanted: Wanted) -> Numbers:
        if serial.max(initial=0) > ONE or (serial == FLOAT).any():
            raise Unusual("a column of numbers holds something else")
        filled = np.flatnonzero(size)
        if not len(filled):
            result = np.zeros(len(at), np.int64)
        elif len(filled) == len(at):
            result = self._numbers_ending_at(at + size, size)
        else:
            result = np.zeros(len(at), np.int64)
            result[filled] = self._numbers_ending_at((at + size)[filled], size[filled])
        if len(filled) < len(at):
            result[serial == 0] = wanted.default
            result[serial == ONE] = 1
        return result

    def _numbers_ending_at(self, end: Numbers, size: Numbers) -> Numbers:
        """Signed numbers of 1 to 8 bytes: eight bytes that end with them, then what stands before is shifted out."""
        words = self._words[end - 8].astype(np.int64)
        spare = 64 - 8 * size
        return (words << spare) >> spare

    def _texts(self, at: Numbers, serial: NDArray[np.int64] | Bytes, size: Numbers, wanted: Wanted) -> Numbers:
        if ((serial != 0) & ((serial <= FIRST_TEXT) | (serial % 2 == 0))).any():
            raise Unusual("a column of texts holds something else")
        assert wanted.intern is not None
        result = np.full(len(at), wanted.default, np.int64)
        filled = np.flatnonzero(serial)
        content, number = self._map, wanted.intern
        ends = (at + size)[filled].tolist()
        texts = [content[start:end] for start, end in zip(at[filled].tolist(), ends, strict=True)]
        result[filled] = np.fromiter(map(number, texts), np.int64, len(texts))
        return result


@dataclass(frozen=True)
class Rows:
    """Of each row: its number, where its record begins in the file, and how many bytes that has."""

    number: Numbers
    at: Numbers
    payload: Numbers
