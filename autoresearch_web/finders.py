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

PREFIX = "vendor"
VENDORED = {
    "plotly.min.js": ("plotly", "package_data/plotly.min.js"),
    "htmx.min.js": ("django_htmx", "static/django_htmx/htmx-2.min.js"),
}


def locate(name: str) -> Path | None:
    """Where ``vendor/<name>`` lies, without importing its package. None: not one of ``VENDORED``, or not installed."""
    package, inside = VENDORED.get(name, ("", ""))
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / inside
    return path if path.is_file() else None


class OneFile(FileSystemStorage):
    """A storage that holds a single file, under the name that pages know it by."""

    prefix = PREFIX

    def __init__(self, path: Path) -> None:
        super().__init__(location=path.parent)
        self.file = path

    def path(self, name: str) -> str:
        return str(self.file)


class VendorFinder(BaseFinder):
    def __init__(self, app_names: Any = None, *args: Any, **kwargs: Any) -> None:
        found = {name: locate(name) for name in VENDORED}
        self.storages = {name: OneFile(path) for name, path in found.items() if path}

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        folder, _, name = path.partition("/")
        storage = self.storages.get(name) if folder == PREFIX else None
        found = [str(storage.file)] if storage else []
        return found if find_all else next(iter(found), None)

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        yield from self.storages.items()
