"""Static files that lie in installed packages, served under ``vendor/``: nothing is fetched from elsewhere, or copied.

docs/ui.md lists them with their licences.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

VENDORED = {
    "vendor/plotly.min.js": ("plotly", "package_data/plotly.min.js"),
    "vendor/htmx.min.js": ("django_htmx", "static/django_htmx/htmx-2.min.js"),
}


def locate(name: str) -> Path | None:
    """Where the file lies, without importing its package. None: it is not one of ``VENDORED``, or not installed."""
    package, inside = VENDORED.get(name, ("", ""))
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / inside
    return path if path.is_file() else None


class VendorStorage(FileSystemStorage):
    def path(self, name: str) -> str:
        return str(locate(name) or "")


class VendorFinder(BaseFinder):
    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        found = locate(path)
        if find_all:
            return [str(found)] if found else []
        return str(found) if found else None

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        storage = VendorStorage()
        storage.prefix = ""  # type: ignore[attr-defined]
        for name in VENDORED:
            if locate(name):
                yield name, storage
