"""Launches of a report beside a profile's columns: ``ncu.json`` lists them, ``ncu.bin`` holds each one's metrics.

One launch is read without the others: a report of thousands of launches costs a page no more than one of seven.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from profiling.ncu.metrics import SUMMARY

INDEX, DETAILS = "ncu.json", "ncu.bin"


class Writer:
    """Takes launches one at a time, in a temporary file; ``save`` puts them into a store folder."""

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self._details: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this)

    def add(self, facts: dict[str, Any], details: dict[str, Any]) -> None:
        """``facts`` go into the list; ``details`` (with ``metrics``) into the launch's own record."""
        packed = zlib.compress(json.dumps(details, ensure_ascii=False).encode(), 6)
        summary = {name: details["metrics"].get(name) for name in SUMMARY}
        self.launches.append(facts | {"at": self._details.tell(), "bytes": len(packed), "metrics": summary})
        self._details.write(packed)

    def save(self, folder: Path, meta: dict[str, Any]) -> None:
        self._details.seek(0)
        with (folder / DETAILS).open("wb") as target:
            shutil.copyfileobj(self._details, target)
        (folder / INDEX).write_text(json.dumps(meta | {"launches": self.launches}, ensure_ascii=False))


class Launches:
    """Read access. ``meta`` holds what the report says of itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: dict[str, Any] = json.loads((folder / INDEX).read_text())
        self.launches: list[dict[str, Any]] = self.meta.pop("launches")

    @staticmethod
    def exist(folder: Path) -> bool:
        return (folder / INDEX).is_file()

    def details(self, index: int) -> dict[str, Any]:
        """One launch: metrics, curves, rules, lines."""
        facts = self.launches[index]
        with (self.folder / DETAILS).open("rb") as file:
            file.seek(facts["at"], os.SEEK_SET)
            found: dict[str, Any] = json.loads(zlib.decompress(file.read(facts["bytes"])))
        return found
