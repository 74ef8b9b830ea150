"""The measured ceilings of a GPU, kept by its identity: measured once, and again when GPU, driver or torch change."""

from __future__ import annotations

import json
import os
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import CandidateFailure, Infrastructure
from .devices import Gpu
from .spares import BECOME_LIMIT_S, Spares, become

MEASURE_LIMIT_S = 120.0


def cache_file() -> Path:
    """``peaks.json`` in this worker's cache: below AUTORESEARCH_HOME, else XDG_CACHE_HOME, else ~/.cache."""
    home = os.environ.get("AUTORESEARCH_HOME")
    if home:
        return Path(home) / "cache" / "peaks.json"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "autoresearch-web" / "peaks.json"


def torch_version() -> str:
    return metadata.version("torch")


def identity(gpu: Gpu, torch: str) -> str:
    return f"{gpu.identity} torch {torch}"


def kept(gpu: Gpu, torch: str) -> dict[str, float] | None:
    """What was measured before, or None."""
    try:
        entry = json.loads(cache_file().read_text()).get(identity(gpu, torch))
    except (OSError, ValueError, AttributeError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("peaks"), dict):
        return None
    return {str(name): float(value) for name, value in entry["peaks"].items()}


def keep(gpu: Gpu, torch: str, peaks: dict[str, float]) -> None:
    """Written whole and then moved into place, so that no reader sees half of it."""
    path = cache_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = {}
    try:
        loaded = json.loads(path.read_text())
        known = loaded if isinstance(loaded, dict) else {}
    except (OSError, ValueError):
        pass
    known[identity(gpu, torch)] = {"peaks": peaks, "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(known, indent=1))
    temporary.replace(path)


def measure(gpu: Gpu, spares: Spares, scale: float = 1.0) -> dict[str, float]:
    """Measure now: about two seconds of the GPU. ``scale`` shrinks it for a rehearsal."""
    channel = spares.take(lambda: False)
    try:
        nonce = become(channel, "peaks", {"empty": b""})
        channel.receive(nonce, BECOME_LIMIT_S, "starting the probe of peaks")
        answer = channel.ask("measure", MEASURE_LIMIT_S, scale=scale)
        return {name: float(value) for name, value in answer["peaks"].items()}
    except CandidateFailure as failure:
        raise Infrastructure(f"the peaks of this GPU could not be measured: {failure.message}") from failure
    finally:
        channel.close()


def of(gpu: Gpu, spares: Spares) -> dict[str, float]:
    """The peaks of this GPU: kept, or measured and kept."""
    torch = torch_version()
    found = kept(gpu, torch)
    if found is None:
        found = measure(gpu, spares)
        keep(gpu, torch, found)
    return found
