"""Which source line an instruction of a cubin came from: the line table of a GPU program (ELF, DWARF 2 to 4)."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_ROWS = 2_000_000
RELA, REL = 4, 9


@dataclass
class LineTable:
    """Rows of one function by ascending offset: (offset in bytes, file, line)."""

    offsets: list[int] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def at(self, offset: int) -> tuple[str, int] | None:
        """File and line of the instruction at ``offset`` bytes into the function; None where none is recorded."""
        index = bisect.bisect_right(self.offsets, offset) - 1
        return self.places[index] if index >= 0 and self.places[index][1] > 0 else None


def line_tables(elf: bytes) -> dict[str, LineTable]:
    """Line tables by function. Empty where the cubin has none (compile with `-lineinfo`) or is damaged."""
    try:
        sections = read_sections(elf)
        if ".debug_line" not in sections:
            return {}
        owners = relocated_symbols(elf, sections)
        return read_programs(bytes_of(elf, sections[".debug_line"]), owners)
    except (struct.error, IndexError, ValueError, UnicodeDecodeError):
        return {}


Section = tuple[int, int, int, int, int]
"""Type, offset, size, link, entry size."""


def read_sections(elf: bytes) -> dict[str, Section]:
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF")
    table = struct.unpack_from("<Q", elf, 40)[0]
    entry_bytes, count, names_index = struct.unpack_from("<HHH", elf, 58)
    raw = []
    for index in range(count):
        name, kind, _, _, offset, size, link, _, _, entry = struct.unpack_from(
            "<IIQQQQIIQQ", elf, table + index * entry_bytes
        )
        raw.append((name, (kind, offset, size, link, entry)))
    names = raw[names_index][1]
    found = {}
    for name, section in raw:
        start = names[1] + name
        found[elf[start : elf.index(b"\0", start)].decode()] = section
    return found


def bytes_of(elf: bytes, section: Section) -> bytes:
    return elf[section[1] : section[1] + section[2]]


def relocated_symbols(elf: bytes, sections: dict[str, Section]) -> dict[int, str]:
    """Function by the position in .debug_line where its address is to be filled in."""
    symbols = bytes_of(elf, sections[".symtab"])
    texts = bytes_of(elf, sections[".strtab"])
    found = {}
    for name in (".rela.debug_line", ".rel.debug_line"):
        if name not in sections:
            continue
        entries = bytes_of(elf, sections[name])
        step = 24 if sections[name][0] == RELA else 16
        for at in range(0, len(entries) - step + 1, step):
            offset, info = struct.unpack_from("<QQ", entries, at)
            start = struct.unpack_from("<I", symbols, (info >> 32) * 24)[0]
            found[offset] = texts[start : texts.index(b"\0", start)].decode().removeprefix(".text.")
    return found


class Reader:
    """Numbers out of a byte string."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result
            if shift > 70:
                raise ValueError("a number without end")

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def fixed(self, form: str) -> int:
        value = struct.unpack_from(f"<{form}", self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return int(value)

    def string(self) -> str:
        stop = self.data.index(b"\0", self.at)
        value = self.data[self.at : stop].decode("utf-8", "replace")
        self.at = stop + 1
        return value


@dataclass
class Header:
    min_step: int
    line_base: int
    line_range: int
    opcode_base: int
    lengths: list[int]
    files: list[str]


def read_programs(data: bytes, owners: dict[int, str]) -> dict[str, LineTable]:
    tables: dict[str, LineTable] = {}
    at = 0
    while at + 4 <= len(data):
        length = struct.unpack_from("<I", data, at)[0]
        end = min(at + 4 + length, len(data))
        reader = Reader(data, at + 4, end)
        if 2 <= reader.fixed("H") <= 4 and (header := read_header(reader, data, at)):
            for owner, rows in run(reader, header, owners):
                add_rows(tables, owner, rows)
        at = end
    return tables


def add_rows(tables: dict[str, LineTable], owner: str, rows: list[tuple[int, str, int]]) -> None:
    table = tables.setdefault(owner, LineTable())
    for offset, path, line in sorted(rows, key=lambda row: row[0]):
        table.offsets.append(offset)
        table.places.append((path, line))


def read_header(reader: Reader, data: bytes, at: int) -> Header | None:
    version = struct.unpack_from("<H", data, at + 4)[0]
    program = reader.fixed("I")
    program += reader.at
    min_step = reader.fixed("B")
    if version == 4:
        reader.fixed("B")
    reader.fixed("B")
    base, width, opcodes = reader.fixed("b"), reader.fixed("B"), reader.fixed("B")
    lengths = [0, *(reader.fixed("B") for _ in range(opcodes - 1))]
    folders = [""]
    while folder := reader.string():
        folders.append(folder)
    files = [""]
    while name := reader.string():
        index, _, _ = reader.unsigned(), reader.unsigned(), reader.unsigned()
        path = folders[index] if index < len(folders) else ""
        files.append(f"{path}/{name}" if path and not name.startswith("/") else name)
    reader.at = program
    return Header(min_step, base, width, opcodes, lengths, files) if width else None


def run(reader: Reader, header: Header, owners: dict[int, str]) -> Iterator[tuple[str, list[tuple[int, str, int]]]]:
    """Execute a line number program (DWARF 4, section 6.2.5): one function's rows at each end of sequence."""
    address, file, line, owner = 0, 1, 1, ""
    rows: list[tuple[int, str, int]] = []

    def emit() -> None:
        name = header.files[file] if 0 <= file < len(header.files) else ""
        rows.append((address, name, line))
        if len(rows) > MAX_ROWS:
            raise ValueError("too many lines")

    while reader.at < reader.end:
        opcode = reader.fixed("B")
        if opcode >= header.opcode_base:
            step = opcode - header.opcode_base
            address += step // header.line_range * header.min_step
            line += header.line_base + step % header.line_range
            emit()
        elif opcode == 0:
            length = reader.unsigned()
            following = reader.at + length
            extended = reader.fixed("B")
            if extended == 1:
                yield owner, rows
                address, file, line, rows = 0, 1, 1, []
            elif extended == 2:
                owner = owners.get(reader.at, owner)
                address = reader.fixed("Q") if length == 9 else 0
            reader.at = following
        elif opcode == 1:
            emit()
        elif opcode == 2:
            address += reader.unsigned() * header.min_step
        elif opcode == 3:
            line += reader.signed()
        elif opcode == 4:
            file = reader.unsigned()
        elif opcode == 8:
            address += (255 - header.opcode_base) // header.line_range * header.min_step
        elif opcode == 9:
            address += reader.fixed("H")
        else:
            for _ in range(header.lengths[opcode]):
                reader.unsigned()
