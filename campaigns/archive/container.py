"""The file around a campaign: a zip whose manifest names every part with its size and sha256.

What is written depends on the parts alone: same parts, same bytes. What is read is taken for hostile until checked:
nothing is ever unpacked to a disk, and no size that the file claims is believed.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Callable, Iterable
from typing import IO, Any

import msgspec

from ..damaged import DAMAGED_ZIP
from .errors import ArchiveError

FORMAT = "autoresearch-web campaign"
SCHEMA = 1
MANIFEST = "manifest.json"
MAX_PARTS = 65_000
"""Below 65,535, above which a zip needs another kind of directory (zip64), which is neither written nor read."""
MAX_DIRECTORY_BYTES = 8 << 20
MAX_PART_BYTES = 64 << 20
MAX_TOTAL_BYTES = 2 << 30
MAX_RATIO = 200
"""Unpacked over packed. Reports and sources reach 10 to 20; a bomb reaches 1,000."""
FREE_BYTES = 32 << 20
"""Up to so much unpacked, the ratio is not asked."""
EPOCH = (1980, 1, 1, 0, 0, 0)
END_BYTES = 22
READ_BYTES = 1 << 20


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    schema: int
    title: str
    problem: str
    parts: list[Part]


def to_json(value: Any) -> bytes:
    """The one spelling of a value: sorted keys, one a line."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def from_json(data: bytes, path: str) -> Any:
    try:
        text = data.decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{path}: not JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON that says a key twice says two things, and readers disagree which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def write(file: IO[bytes], title: str, problem: str, parts: Iterable[tuple[str, bytes]]) -> str:
    """Write an archive and return its identity: the sha256 of its manifest."""
    listed: list[Part] = []
    total = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=False) as packed:
        for path, data in parts:
            total += len(data)
            if len(data) > MAX_PART_BYTES or total > MAX_TOTAL_BYTES or len(listed) >= MAX_PARTS:
                raise ArchiveError(
                    f"{path}: too much for one archive ({len(listed):,} parts, {total:,} bytes so far): "
                    f"at most {MAX_PARTS:,} parts, {MAX_PART_BYTES:,} bytes each and {MAX_TOTAL_BYTES:,} together."
                )
            listed.append(Part(path=path, bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
            packed.writestr(_entry(path), data, compresslevel=6)
        manifest = Manifest(format=FORMAT, schema=SCHEMA, title=title, problem=problem, parts=listed)
        data = to_json(msgspec.to_builtins(manifest))
        packed.writestr(_entry(MANIFEST), data, compresslevel=6)
    return hashlib.sha256(data).hexdigest()


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class Archive:
    """An archive opened for reading, names and sizes checked. Parts are read one at a time, each against its hash."""

    def __init__(self, file: IO[bytes]) -> None:
        size = _check_end(file)
        try:
            self._zip = zipfile.ZipFile(file)
        except DAMAGED_ZIP as error:
            raise ArchiveError(f"This is no archive that can be read: {error}.") from None
        self._entries = _checked_entries(self._zip.infolist(), size)
        self.manifest, self.sha256 = self._read_manifest()
        self._parts = {part.path: part for part in self.manifest.parts}
        self._check_parts()

    @property
    def paths(self) -> list[str]:
        return list(self._parts)

    def has(self, path: str) -> bool:
        return path in self._parts

    def read(self, path: str) -> bytes:
        """One part. Raises ``ArchiveError`` when it is not there, or not what the manifest says."""
        part = self._parts.get(path)
        if part is None:
            raise ArchiveError(f"{path}: missing from the archive.")
        data = self._unpack(path, part.bytes)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise ArchiveError(
                f"{path}: not what the manifest says (sha256 differs). The archive was changed or damaged."
            )
        return data

    def json(self, path: str) -> Any:
        return from_json(self.read(path), path)

    def _unpack(self, path: str, limit: int) -> bytes:
        """At most ``limit`` bytes, whatever the directory says."""
        try:
            with self._zip.open(self._entries[path]) as stream:
                data = stream.read(limit)
                if len(data) != limit or stream.read(1):
                    raise ArchiveError(
                        f"{path}: its size is not what the manifest says. The archive was changed or damaged."
                    )
                return data
        except ArchiveError:
            raise
        except DAMAGED_ZIP as error:
            raise ArchiveError(f"{path}: damaged: {error}.") from None

    def _read_manifest(self) -> tuple[Manifest, str]:
        if MANIFEST not in self._entries:
            raise ArchiveError(f"{MANIFEST}: missing. This is a zip, but no campaign archive.")
        data = self._unpack(MANIFEST, self._entries[MANIFEST].file_size)
        raw = from_json(data, MANIFEST)
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ArchiveError(f"{MANIFEST}: the format is not {FORMAT!r}. This is no campaign archive.")
        schema = raw.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise ArchiveError(
                f"{MANIFEST}: schema {schema} is newer than this version reads (up to {SCHEMA}). "
                "Update Autoresearch Web first."
            )
        try:
            manifest = msgspec.convert(raw, Manifest)
        except msgspec.ValidationError as error:
            raise ArchiveError(f"{MANIFEST}: {error}") from None
        if manifest.schema < 1:
            raise ArchiveError(f"{MANIFEST}: there is no schema {manifest.schema}.")
        return manifest, hashlib.sha256(data).hexdigest()

    def _check_parts(self) -> None:
        if len(self._parts) != len(self.manifest.parts):
            raise ArchiveError(f"{MANIFEST}: names a part twice.")
        stored = set(self._entries) - {MANIFEST}
        if missing := sorted(set(self._parts) - stored):
            raise ArchiveError(f"{missing[0]}: named in the manifest, and not in the archive.")
        if extra := sorted(stored - set(self._parts)):
            raise ArchiveError(f"{extra[0]}: in the archive, and not named in the manifest.")
        for path, part in self._parts.items():
            if part.bytes != self._entries[path].file_size:
                raise ArchiveError(
                    f"{path}: its size is not what the manifest says. The archive was changed or damaged."
                )


def _check_end(file: IO[bytes]) -> int:
    """Read the directory's own size before anything believes it. Returns the file's size in bytes."""
    size = file.seek(0, 2)
    if size < END_BYTES:
        raise ArchiveError("This is no zip file.")
    file.seek(size - END_BYTES)
    signature, *_, count, directory, _, comment = struct.unpack("<4s4H2LH", file.read(END_BYTES))
    if signature != b"PK\5\6" and not comment:
        raise ArchiveError("This is no zip file. A campaign's archive is what “Export as one file” wrote.")
    if signature != b"PK\5\6" or comment:
        raise ArchiveError("This is no campaign archive: a zip without a comment, as Autoresearch Web writes it.")
    if count > MAX_PARTS + 1 or directory > MAX_DIRECTORY_BYTES:
        raise ArchiveError(f"It claims {count:,} entries in {directory:,} bytes; at most {MAX_PARTS:,} are read.")
    if size >= END_BYTES + 20:
        file.seek(size - END_BYTES - 20)
        if file.read(4) == b"PK\6\7":
            raise ArchiveError("It is a zip64, which campaign archives are not.")
    file.seek(0)
    return size


def _checked_entries(entries: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    total = 0
    if len(entries) > MAX_PARTS + 1:
        raise ArchiveError(f"It has {len(entries):,} entries; at most {MAX_PARTS:,} are read.")
    for entry in entries:
        for wrong, why in _FAULTS:
            if wrong(entry):
                raise ArchiveError(f"{entry.orig_filename[:200]!r}: {why}.")
        if entry.filename in found:
            raise ArchiveError(f"{entry.filename!r}: is in the archive twice.")
        found[entry.filename] = entry
        total += entry.file_size
    if total > MAX_TOTAL_BYTES or total > max(FREE_BYTES, MAX_RATIO * size):
        raise ArchiveError(
            f"It would unpack to {total:,} bytes from {size:,}: a zip bomb. "
            f"At most {MAX_TOTAL_BYTES:,} bytes and {MAX_RATIO} times its size are read."
        )
    return found


def _leaves(entry: zipfile.ZipInfo) -> bool:
    name = entry.orig_filename
    return name.startswith("/") or "\\" in name or ":" in name or any(p in ("", ".", "..") for p in name.split("/"))


def _is_special(entry: zipfile.ZipInfo) -> bool:
    kind = entry.external_attr >> 16 & 0o170000
    return kind not in (0, 0o100000)


_FAULTS: list[tuple[Callable[[zipfile.ZipInfo], bool], str]] = [
    (lambda e: "\0" in e.orig_filename or not e.orig_filename.isprintable(), "a name with control characters"),
    (lambda e: len(e.orig_filename) > 1000, "a name of more than 1,000 characters"),
    (_leaves, "the path leaves the archive, or is no plain relative path"),
    (_is_special, "a link or device, where only plain files may be"),
    (lambda e: bool(e.flag_bits & 0x1), "is encrypted"),
    (
        lambda e: e.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
        "packed by a method that is not read",
    ),
    (lambda e: e.file_size > MAX_PART_BYTES, f"would unpack to more than {MAX_PART_BYTES:,} bytes"),
]
