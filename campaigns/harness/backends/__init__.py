"""The backends, listed once."""

from __future__ import annotations

from ..errors import CandidateError
from .base import Backend, Built
from .cpp import Cpp
from .cuda import Cuda
from .cutedsl import CuteDsl
from .torch import Torch
from .triton import Triton

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (Cpp(), Torch(), Triton(), Cuda(), CuteDsl())}

__all__ = ["BACKENDS", "Backend", "Built", "get"]


def get(name: str) -> Backend:
    """Raises ``CandidateError`` for one that is unknown or cannot be used here."""
    backend = BACKENDS.get(name)
    if backend is None:
        raise CandidateError(f"backend {name!r} cannot be judged here: there are {', '.join(BACKENDS)}")
    if why := backend.missing():
        raise CandidateError(f"backend {name!r} cannot be used here: {why}")
    return backend
