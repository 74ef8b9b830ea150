"""What a backend is: how sources become something a runner can load. One file a backend, listed in ``__init__``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..request import CandidateSource
from ..sandbox import Limits, Spec


@dataclass(frozen=True)
class Built:
    """What goes into the runner's sandbox, and the file among it that holds ``run``."""

    files: dict[str, bytes]
    entry: str
    log: str = ""


class Backend(Protocol):
    """A way to build and run sources. It SHALL NOT run any of them outside a sandbox."""

    @property
    def name(self) -> str: ...

    @property
    def devices(self) -> tuple[str, ...]:
        """Where its workloads can run: ``cpu``, ``cuda`` or both, the usual one first."""

    def missing(self) -> str | None:
        """Why it cannot be used here and what to do, or None."""

    def build(self, source: CandidateSource) -> Built:
        """Raises ``CandidateFailure('build_failed', …)`` with the log where the sources do not build."""

    def spec(self, built: Built, limits: Limits, cores: tuple[int, ...]) -> Spec:
        """The sandbox of a runner on the CPU. On a GPU a process that waits takes the files (``gpu.spares``)."""
