"""JSON bytes out of a plain or gzip file, in chunks, with a bound on what a small file may expand to."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from profiling.importers.limits import Limits, Refused

CHUNK_BYTES = 8 << 20
READ_BYTES = 1 << 20
MAX_EXPANDED_BYTES = 32 << 30
MAX_RATIO, RATIO_COUNTS_FROM_BYTES = 200, 256 << 20
"""Real traces expand 15- to 18-fold (measured); a bomb a thousandfold."""
GZIP_HINT = "Copy the file again in binary form, or write the trace again; `gzip -t FILE` tells whether it is whole."


def chunks(path: Path, limits: Limits, tell: Callable[[float], None]) -> Iterator[bytes]:
    """The file's JSON in pieces of about CHUNK_BYTES.

    :param tell: called with the share of the file that has been read.
    :raises Refused: when a gzip file is cut, damaged, or expands without bound.
    """
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    pieces = inflate(path, limits) if zipped else plain(path)
    held: list[bytes] = []
    size = 0
    whole = max(1, path.stat().st_size)
    for piece, read in pieces:
        limits.check()
        held.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            tell(min(1.0, read / whole))
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def plain(path: Path) -> Iterator[tuple[bytes, int]]:
    read = 0
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            read += len(piece)
            yield piece, read


def inflate(path: Path, limits: Limits) -> Iterator[tuple[bytes, int]]:
    """Expanded pieces and how much of the file was read; several gzip members follow one another."""
    read = expanded = 0
    decoder = zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        while raw := file.read(READ_BYTES):
            read += len(raw)
            while raw:
                try:
                    piece = decoder.decompress(raw, CHUNK_BYTES)
                except zlib.error as error:
                    raise Refused(
                        f"a damaged gzip file: at byte {read - len(raw):,} to {read:,} ({error})",
                        GZIP_HINT,
                        format="gzip",
                    ) from None
                expanded += len(piece)
                check_growth(expanded, read)
                yield piece, read
                limits.check()
                raw = decoder.unconsumed_tail
                if decoder.eof:
                    raw = decoder.unused_data.lstrip(b"\0")
                    if raw and not raw.startswith(b"\x1f"):
                        raw = b""
                    if raw:
                        decoder = zlib.decompressobj(wbits=31)
    if not decoder.eof:
        raise Refused(
            f"a cut gzip file: it ends after {read:,} bytes, within its data ({expanded:,} bytes expanded)",
            GZIP_HINT,
            format="gzip",
        )


def check_growth(expanded: int, read: int) -> None:
    if expanded > MAX_EXPANDED_BYTES or (expanded > RATIO_COUNTS_FROM_BYTES and expanded > MAX_RATIO * read):
        raise Refused(
            f"a gzip file that expands without bound: {expanded:,} bytes out of {read:,} so far, and more to come",
            "A trace expands about 15-fold. Capture fewer steps, or upload the trace itself.",
            format="gzip",
        )
