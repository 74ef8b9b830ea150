"""What kind of JSON a file holds, by its first bytes, plain or in gzip."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from profiling.importers.limits import Refused, quoted

HEAD_BYTES = 64 * 1024
HATCHET = re.compile(rb'\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:')
"""How Proton's call tree begins: a list of nodes with frame, metrics and children (hatchet's literal format)."""


def is_call_tree(path: Path) -> bool:
    """Whether it is Triton Proton's JSON; else it may be a trace.

    :raises Refused: for a gzip file of something that is no JSON.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"\x1f\x8b"):
        head = unpacked(head)
        check_content(head)
    return bool(HATCHET.match(head.removeprefix(b"\xef\xbb\xbf")))


def unpacked(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error as error:
        raise Refused(f"a damaged gzip file ({error})", "Copy the file again in binary form.", format="gzip") from None


def check_content(head: bytes) -> None:
    """Refuse a gzip file whose content is something else than JSON, named for what it is."""
    others = {
        b"SQLite format 3": "a SQLite database",
        b"NVR\0": "an Nsight Compute report",
        b"NVIDIA Tegra Profiler Report": "an Nsight Systems report (.nsys-rep)",
        b"\x1f\x8b": "another gzip file",
    }
    for magic, what in others.items():
        if head.startswith(magic):
            hint = "Unpack it (`gunzip FILE.gz`) and upload what is inside."
            raise Refused(f"a gzip file that holds {what}", hint, format="gzip")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head and text and text[:1] not in (b"{", b"["):
        what = "an archive (tar)" if head[257:262] == b"ustar" else f"no trace (it begins with {quoted(text[:12])})"
        raise Refused(f"a gzip file that holds {what}", "Upload the trace itself, or its .json.gz.", format="gzip")
    if head and not text and len(head) >= HEAD_BYTES:
        raise Refused("a gzip file that holds only blanks", "Write the trace again.", format="gzip")
