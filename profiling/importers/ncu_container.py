"""The container of Nsight Compute reports, version 7, as NVIDIA documents it ("Report File Format" of the
Customization Guide): ``NVR\\0``, u32 size, file header, then blocks of u32 size, block header, payload; little endian.

A compressed report (.ncu-repz) is the same inside one zstd stream.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from profiling.importers.limits import Limits, Refused
from profiling.importers.protobuf_wire import WireError, fields, first, integer, text, view

MAGIC = b"NVR\x00"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
VERSION = 7
MAX_HEADER_BYTES = 256 << 20
MAX_EXPANDED_BYTES = 8 << 30
"""A compressed report may grow to this; a real one grows three- to tenfold."""
COPY = "Copy the report again in binary form, or open it with `ncu --import FILE.ncu-rep` to see whether it is whole."


@dataclass(frozen=True)
class Block:
    """Payload entries: first ``sources``, then ``results``, then ranges; each is a u32 size and a message."""

    number: int
    at: int
    payload_bytes: int
    sources: int
    results: int
    session: bytes


@dataclass(frozen=True)
class Entry:
    kind: str
    """``source``, ``result`` or ``other``."""
    at: int
    """Byte of the file, for messages."""
    data: memoryview


class Container:
    """An open report: its blocks, its string table over all blocks, and its entries one at a time.

    :raises Refused: when the file is cut, damaged, or of another version.
    """

    def __init__(self, file: BinaryIO, size: int, limits: Limits) -> None:
        self.file, self.size, self.limits = file, size, limits
        self.strings: list[str] = []
        self.blocks: list[Block] = []
        self._read_header()
        at = self._start
        while at < size:
            at = self._read_block(at)
        if not self.blocks:
            raise cut(at, "its first block should begin", 0)

    def _read_header(self) -> None:
        self.file.seek(0)
        head = self.file.read(8)
        if len(head) < 8 or not head.startswith(MAGIC):
            raise damaged("its first bytes are not those of a report")
        length = struct.unpack("<I", head[4:])[0]
        if length > 4096 or 8 + length > self.size:
            raise damaged(f"its file header states {length:,} bytes, the file has {self.size:,}")
        try:
            version = integer(first(memoryview(self.file.read(length)), 1), -1)
        except WireError as error:
            raise damaged(f"its file header is no message ({error})") from None
        if version != VERSION:
            raise Refused(
                f"an Nsight Compute report of format version {version}; version {VERSION} is the one that is read here",
                "Open it with the Nsight Compute that wrote it and save it with one of 2020.1 to 2025.3, "
                "or export what you need with `ncu --import FILE.ncu-rep --csv --page raw`.",
                format="ncu-rep",
            )
        self._start = 8 + length

    def _read_block(self, at: int) -> int:
        number = len(self.blocks)
        length = self._size_at(at, f"block {number}")
        if length > MAX_HEADER_BYTES or at + 4 + length > self.size:
            raise cut(at, f"the header of block {number} states {length:,} bytes", self.size - at - 4)
        data = memoryview(self.file.read(length))
        found: dict[int, int] = {}
        session = b""
        try:
            for field, _, value in fields(data):
                if field in (1, 2, 5):
                    found[field] = integer(value)
                elif field == 3:
                    session = bytes(view(value))
                elif field == 4:
                    self.strings += [text(name) for n, _, name in fields(view(value)) if n == 1]
        except WireError as error:
            raise damaged(f"the header of block {number} at byte {at:,} is no message ({error})") from None
        start, payload = at + 4 + length, found.get(5, 0)
        if start + payload > self.size:
            raise cut(at, f"block {number} states {payload:,} bytes of payload", self.size - start)
        self.blocks.append(Block(number, start, payload, found.get(1, 0), found.get(2, 0), session))
        self.limits.check()
        return start + payload

    def _size_at(self, at: int, what: str) -> int:
        self.file.seek(at)
        raw = self.file.read(4)
        if len(raw) < 4:
            raise cut(at, f"{what} begins", len(raw))
        return int(struct.unpack("<I", raw)[0])

    def entries(self, wanted: tuple[str, ...]) -> Iterator[Entry]:
        """Payload entries in file order; only the wanted kinds are read into memory, one at a time."""
        for block in self.blocks:
            at, end, index = block.at, block.at + block.payload_bytes, 0
            while at < end:
                length = self._size_at(at, f"entry {index} of block {block.number}")
                if at + 4 + length > end:
                    raise damaged(
                        f"entry {index} of block {block.number} at byte {at:,} states {length:,} bytes, "
                        f"its block has {end - at - 4:,} left"
                    )
                kind = kind_of(block, index)
                if kind in wanted:
                    yield Entry(kind, at, memoryview(self.file.read(length)))
                    self.limits.check()
                at, index = at + 4 + length, index + 1
            if index < block.sources + block.results:
                raise damaged(
                    f"block {block.number} at byte {block.at:,} promises {block.sources + block.results} entries "
                    f"and holds {index}"
                )


def kind_of(block: Block, index: int) -> str:
    if index < block.sources:
        return "source"
    return "result" if index < block.sources + block.results else "other"


def damaged(why: str) -> Refused:
    return Refused(f"a damaged Nsight Compute report: {why}", COPY, format="ncu-rep")


def cut(at: int, states: str, left: int) -> Refused:
    return Refused(
        f"a cut Nsight Compute report: at byte {at:,} {states}, {max(left, 0):,} are left", COPY, format="ncu-rep"
    )


def expand(path: Path, limits: Limits) -> BinaryIO:
    """A compressed report (.ncu-repz) as a temporary file. Where the stream was cut, the container says so.

    :raises Refused: when it is damaged, too large, or holds something else.
    """
    import zstandard

    target = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    written = 0
    try:
        with (
            path.open("rb") as source,
            zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True) as z,
        ):
            while chunk := z.read(4 << 20):
                if not written and not chunk.startswith(MAGIC):
                    raise Refused(
                        "a Zstandard archive, but no compressed Nsight Compute report",
                        "Unpack it (`zstd -d FILE`) and upload the profile inside.",
                        format="archive",
                    )
                written += len(chunk)
                if written > MAX_EXPANDED_BYTES:
                    raise Refused(
                        f"a compressed report that grows beyond {MAX_EXPANDED_BYTES >> 30} GiB",
                        "Profile fewer kernels (`ncu --launch-count`), or fewer sections.",
                        format="ncu-repz",
                    )
                target.write(chunk)
                limits.check()
    except zstandard.ZstdError as error:
        raise Refused(f"a damaged compressed Nsight Compute report ({error})", COPY, format="ncu-repz") from None
    if not written:
        raise Refused("a cut compressed Nsight Compute report (.ncu-repz)", COPY, format="ncu-repz")
    return target
