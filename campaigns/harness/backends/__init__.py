"""The backends, listed once."""

from __future__ import annotations

import threading

from .. import candidate
from ..errors import CandidateError
from ..request import CandidateSource
from .base import Backend, Built
from .cpp import Cpp
from .cuda import Cuda
from .cutedsl import CuteDsl
from .torch import Torch
from .triton import Triton

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (Cpp(), Torch(), Triton(), Cuda(), CuteDsl())}

__all__ = ["BACKENDS", "Backend", "Built", "built", "get"]

KEPT_BUILDS = 32
_kept: dict[str, Built] = {}
_locks: dict[str, threading.Lock] = {}
_lock = threading.Lock()


def get(name: str) -> Backend:
    """Raises ``CandidateError`` for one that is unknown or cannot be used here."""
    backend = BACKENDS.get(name)
    if backend is None:
        raise CandidateError(f"backend {name!r} cannot be judged here: there are {', '.join(BACKENDS)}")
    if why := backend.missing():
        raise CandidateError(f"backend {name!r} cannot be used here: {why}")
    return backend


def built(source: CandidateSource) -> Built:
    """What the sources build to: built once in a process's life, also where several threads ask. Raises what ``get`` and
    ``Backend.build`` raise; a failure is not kept.

    nvcc takes 10 s for a kernel that an evaluation, a profile and each stack want again.
    """
    key = candidate.sha256(source)
    with _lock:
        own = _locks.setdefault(key, threading.Lock())
    try:
        with own:
            found = _kept.get(key)
            if found is None:
                found = get(source.backend).build(source)
                with _lock:
                    while len(_kept) >= KEPT_BUILDS:
                        del _kept[next(iter(_kept))]
                    _kept[key] = found
            return found
    finally:  # whoever waits has the lock in hand, and whoever comes finds what was kept
        with _lock:
            _locks.pop(key, None)
