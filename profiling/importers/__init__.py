"""One entry point for every profile format. No Django here."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiling import report, store_writer
from profiling.events import Capture
from profiling.importers import kineto, kineto_sniff, ncu, nsys, nsys_export, proton
from profiling.importers.limits import Limits, Progress, Refused
from profiling.importers.sniff import sniff

__all__ = ["Imported", "Limits", "Progress", "Refused", "import_profile"]


@dataclass(frozen=True)
class Imported:
    """What an import found. ``report`` is plain data: the keys that `manage.py import_profile --json` prints."""

    store_dir: Path
    report: dict[str, Any]


def import_profile(
    path: Path,
    store_dir: Path,
    progress: Progress = lambda percent, phase: None,
    limits: Limits | None = None,
    name: str = "",
    tool: nsys_export.Tool | None = None,
) -> Imported:
    """Read the profile ``path`` into a store below ``store_dir`` and say what stands out.

    :param store_dir: made when absent; written to be complete or not to be there (a temporary folder, then a rename).
    :param progress: called with percent and phase; may raise to stop the import.
    :param name: the upload's own name, for messages.
    :param tool: the nsys that exports an .nsys-rep; without one such a file is refused as one that needs export.
    :raises Refused: when the file is no profile that can be read; says what it is and what to do.
    """
    limits, started = limits or Limits(), time.monotonic()
    progress(0, "looking at the file")
    with readable(path, store_dir, progress, limits, name, tool) as file:
        capture = read_capture(file, progress, limits, name)
    progress(88, "sorting events into lanes")
    limits.check()
    store_writer.write(capture, store_dir)
    progress(95, "looking for what stands out")
    limits.check()
    result = report.build(store_dir) | capture.report
    result["seconds"] = round(time.monotonic() - started, 3)
    progress(100, "done")
    return Imported(store_dir, result)


@contextmanager
def readable(
    path: Path, store_dir: Path, progress: Progress, limits: Limits, name: str, tool: nsys_export.Tool | None
) -> Iterator[Path]:
    """The file itself, or the export of an .nsys-rep, which is deleted afterwards."""
    try:
        sniff(path, name)
    except Refused as refused:
        if tool is None or not (refused.needs_export and refused.format == "nsys-rep"):
            raise
        waiting = refused
    else:
        yield path
        return
    store_dir.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{store_dir.name}.export.", dir=store_dir.parent))
    try:
        yield nsys_export.export(tool, path, scratch, waiting, progress, limits)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_capture(path: Path, progress: Progress, limits: Limits, name: str = "") -> Capture:
    """The importer for the content of ``path``. A new format is one more line here, and one file."""
    kind = sniff(path, name)
    if kind == "sqlite":
        return nsys.read(path, progress, limits)
    if kind in ("ncu-rep", "zstd"):
        return ncu.read(path, progress, limits)
    if kineto_sniff.is_call_tree(path):
        return proton.read(path, progress, limits)
    return kineto.read(path, progress, limits)
