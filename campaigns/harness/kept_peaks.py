"""Measured ceilings in a file, by the identity of what they were measured on."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


def cache_file() -> Path:
    """``peaks.json`` in this worker's cache: below AUTORESEARCH_HOME, else XDG_CACHE_HOME, else ~/.cache."""
    home = os.environ.get("AUTORESEARCH_HOME")
    if home:
        return Path(home) / "cache" / "peaks.json"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "autoresearch-web" / "peaks.json"


def kept(identity: str) -> dict[str, float] | None:
    """What was measured before, or None."""
    try:
        entry = json.loads(cache_file().read_text()).get(identity)
    except (OSError, ValueError, AttributeError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("peaks"), dict):
        return None
    return {str(name): float(value) for name, value in entry["peaks"].items()}


def keep(identity: str, peaks: dict[str, float]) -> None:
    """Written whole and then moved into place, so that no reader sees half of it.

    Where nothing can be written they are measured again by the next evaluation, and a warning says so.
    """
    path = cache_file()
    try:
        _write(path, identity, peaks)
    except OSError as error:
        log.warning("the measured peaks could not be kept in %s: %s", path, error)


def _write(path: Path, identity: str, peaks: dict[str, float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = {}
    try:
        loaded = json.loads(path.read_text())
        known = loaded if isinstance(loaded, dict) else {}
    except (OSError, ValueError):
        pass
    known[identity] = {"peaks": peaks, "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(known, indent=1))
    temporary.replace(path)
