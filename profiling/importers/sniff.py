"""Tell what a file is by its content, never by its name."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from profiling.importers.limits import Refused, quoted

HEAD_BYTES = 64 * 1024
NSYS_HEADER = b"NVIDIA Tegra Profiler Report "
EXPORT_COMMAND = "nsys export --type sqlite --output {stem}.sqlite {name}"

CONTAINERS = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "an empty zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"BZh": "a bzip2 archive",
}
OTHERS = {
    b"\x7fELF": "a program (ELF)",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"PAR1": "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"\x89HDF": "an HDF5 file",
}


def sniff(path: Path, name: str = "") -> str:
    """The format of ``path``: ``sqlite``, ``ncu-rep``, ``zstd`` (a compressed report), ``json`` or ``gzip``.

    :param name: the upload's own name, used in messages only.
    :raises Refused: for everything else, named for what it is.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not size or not head:
        raise Refused("the file is empty (0 bytes)", "The upload or the export was cut short: export it again.")
    if head.startswith(b"SQLite format 3\x00"):
        check_sqlite_size(head, size)
        return "sqlite"
    if head.startswith(b"NVR\x00"):
        return "ncu-rep"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return "json"
    raise refuse_by_content(head, size, name or path.name)


def check_sqlite_size(head: bytes, size: int) -> None:
    """Compare the length that the SQLite header states with the file's (database file format, section 1.3)."""
    if size < 512 or len(head) < 100:
        raise Refused(f"a cut SQLite file: it ends after {size} bytes, within its first page", recopy_hint())
    page = struct.unpack(">H", head[16:18])[0]
    page = 65536 if page == 1 else page
    pages, change, valid_for = (struct.unpack(">I", head[at : at + 4])[0] for at in (28, 24, 92))
    if page < 512 or page & (page - 1):
        raise Refused(f"a damaged SQLite file: its header states a page size of {page} bytes", recopy_hint())
    if change == valid_for and pages and pages * page > size:
        raise Refused(
            f"a cut SQLite file: its header states {pages * page:,} bytes, the file has {size:,}", recopy_hint()
        )


def recopy_hint() -> str:
    return "Copy the file again, or repeat the export: `nsys export --type sqlite FILE.nsys-rep`."


def refuse_by_content(head: bytes, size: int, name: str) -> Refused:
    if (at := head.find(NSYS_HEADER)) >= 0:
        return refuse_nsys_rep(head, at, name)
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        stated = re.search(rb"size (\d+)", head)
        full = f" of {int(stated.group(1)):,} bytes" if stated else ""
        return Refused(
            f"a Git LFS pointer, not the file itself ({size} bytes of text that stand for a file{full})",
            "Fetch the file with `git lfs pull` and upload that.",
            format="git-lfs-pointer",
        )
    if b"QDSTRM" in head[:4096].upper() or (name.lower().endswith(".qdstrm") and is_binary(head)):
        return Refused(
            "an intermediate Nsight Systems stream (.qdstrm), which is no report yet",
            "Make a report of it with `QdstrmImporter -i FILE.qdstrm` of the same Nsight Systems, then run "
            "`nsys export --type sqlite FILE.nsys-rep` and upload the .sqlite.",
            format="qdstrm",
            needs_export=True,
        )
    for magic, what in CONTAINERS.items():
        if head.startswith(magic):
            return Refused(f"{what}, not a profile", "Unpack it and upload the profile inside.", format="archive")
    for magic, what in OTHERS.items():
        if head.startswith(magic):
            return Refused(f"{what}, not a profile", accepted_hint())
    if re.match(rb"\s*<(!doctype|html|\?xml)", head, re.IGNORECASE):
        return Refused(
            "a web page (HTML or XML), not a profile",
            "A download that needs a login saves its login page instead of the file: fetch the profile again.",
        )
    return Refused(f"not a profile of a known format (it begins with {quoted(head[:12])})", accepted_hint())


def refuse_nsys_rep(head: bytes, at: int, name: str) -> Refused:
    """An .nsys-rep has no open reader: name its producer, and the command that turns it into what can be read."""
    build = re.match(rb"[\w.\-]{1,40}", head[at + len(NSYS_HEADER) :])
    made_by = f", written by Nsight Systems build {build.group().decode().rstrip('.')}" if build else ""
    if at:
        return Refused(
            f"a damaged Nsight Systems report: {at} bytes stand before its header{made_by}",
            "Copy the .nsys-rep again in binary form, then export it: `nsys export --type sqlite FILE.nsys-rep`.",
            format="nsys-rep",
        )
    safe = re.sub(r"[^\w.\-]", "_", Path(name).name) or "FILE.nsys-rep"
    command = EXPORT_COMMAND.format(stem=Path(safe).stem, name=safe)
    return Refused(
        f"an Nsight Systems report (.nsys-rep){made_by}: it needs export, only `nsys` itself can open it",
        f"Run `{command}` with the same or a newer Nsight Systems and upload the .sqlite.",
        format="nsys-rep",
        needs_export=True,
    )


def is_binary(head: bytes) -> bool:
    return b"\x00" in head[:4096]


def accepted_hint() -> str:
    return (
        "Upload an Nsight Systems export (`nsys export --type sqlite FILE.nsys-rep`), an Nsight Compute report "
        "(.ncu-rep) or a torch.profiler trace (.json, .json.gz)."
    )
