"""Stores that this process has open. Mapped columns cost address space, no memory of their own."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from profiling.models import Profile
from profiling.store import Store


class Gone(Exception):
    """A profile that is marked as ready, whose store is not on this machine's disk."""


def store_of(profile: Profile) -> Store:
    path = profile.store_path
    try:
        return _open(path, (path / "meta.json").stat().st_mtime_ns)
    except FileNotFoundError as error:
        raise Gone(f"The stored columns of {profile.name} are missing: upload the capture again.") from error


@lru_cache(maxsize=16)
def _open(path: Path, written_ns: int) -> Store:
    return Store(path)
