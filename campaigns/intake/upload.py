"""What people paste or upload, as text files by path: one file, or an archive that is read and never unpacked to disk."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath

from campaigns.damaged import DAMAGED_ZIP
from campaigns.harness.problem import TEXT_SUFFIXES

from .errors import IntakeError

MAX_UPLOAD_BYTES = 8 << 20
MAX_FILES = 400
MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 16 << 20
SUFFIXES = TEXT_SUFFIXES | {".yml", ".yaml", ".jsonl"}
PIECE_BYTES = 1 << 16


def read_upload(name: str, data: bytes) -> dict[str, str]:
    """Text files by relative path. Raises ``IntakeError``; whatever an archive says of its own sizes is not believed."""
    if len(data) > MAX_UPLOAD_BYTES:
        raise IntakeError(f"{name}: {len(data):,} bytes; at most {MAX_UPLOAD_BYTES:,} are taken.")
    if not data.strip():
        raise IntakeError(f"{name}: empty.")
    if data[:4] == b"PK\x03\x04" or name.lower().endswith(".zip"):
        return without_common_folder(read_zip(name, data))
    return {PurePosixPath(name.replace("\\", "/")).name or "problem.py": text_of(name, data)}


def text_of(name: str, data: bytes) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise IntakeError(f"{name}: {len(data):,} bytes; a file of a problem has at most {MAX_FILE_BYTES:,}.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise IntakeError(f"{name}: not UTF-8 text.") from None
    if "\0" in text:
        raise IntakeError(f"{name}: holds a NUL byte; it is no text.")
    return text.replace("\r\n", "\n")


def read_zip(name: str, data: bytes) -> dict[str, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [e for e in archive.infolist() if not e.is_dir()]
            if len(entries) > MAX_FILES:
                raise IntakeError(f"{name}: {len(entries):,} files; at most {MAX_FILES} are taken.")
            return read_entries(archive, entries)
    except IntakeError:
        raise
    except DAMAGED_ZIP as error:
        raise IntakeError(f"{name}: not a readable zip archive: {error}.") from None


def read_entries(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> dict[str, str]:
    files: dict[str, str] = {}
    total = 0
    for entry in entries:
        path = safe_path(entry)
        if path.suffix.lower() not in SUFFIXES or any(p.startswith(".") or p == "__pycache__" for p in path.parts):
            continue
        if str(path) in files:
            raise IntakeError(f"{path}: twice in the archive.")
        content = limited(archive, entry)
        total += len(content)
        if total > MAX_TOTAL_BYTES:
            raise IntakeError(f"the archive unpacks to more than {MAX_TOTAL_BYTES:,} bytes.")
        files[str(path)] = text_of(str(path), content)
    if not files:
        raise IntakeError(f"no text file ({', '.join(sorted(SUFFIXES))}) in the archive.")
    return files


def safe_path(entry: zipfile.ZipInfo) -> PurePosixPath:
    name = entry.filename
    path = PurePosixPath(name)
    kind = (entry.external_attr >> 16) & 0o170000
    if kind not in (0, 0o100000):
        raise IntakeError(f"{name!r}: a link or special file; only plain files are taken.")
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or any(ord(c) < 32 for c in name):
        raise IntakeError(f"{name!r}: a path that leaves its folder.")
    return path


def limited(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Counted while it is unpacked: what the header says may be a lie."""
    content = bytearray()
    with archive.open(entry) as stream:
        while piece := stream.read(PIECE_BYTES):
            content += piece
            if len(content) > MAX_FILE_BYTES:
                raise IntakeError(f"{entry.filename}: unpacks to more than {MAX_FILE_BYTES:,} bytes.")
    return bytes(content)


def without_common_folder(files: dict[str, str]) -> dict[str, str]:
    """``name/problem.toml`` becomes ``problem.toml`` where all files lie in one folder."""
    first = {PurePosixPath(path).parts[0] for path in files}
    if len(first) == 1 and all("/" in path for path in files):
        return without_common_folder({path.partition("/")[2]: text for path, text in files.items()})
    return files
