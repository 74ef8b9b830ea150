"""The measured ceilings of a GPU, kept by its identity: measured once, and again when GPU, driver or torch change."""

from __future__ import annotations

from importlib import metadata

from .. import kept_peaks
from ..errors import CandidateFailure, Infrastructure
from .devices import Gpu
from .spares import BECOME_LIMIT_S, Spares, become

MEASURE_LIMIT_S = 120.0


def torch_version() -> str:
    return metadata.version("torch")


def identity(gpu: Gpu, torch: str) -> str:
    return f"{gpu.identity} torch {torch}"


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
    """The peaks of this GPU: kept, or measured and kept; and beside them what its memory's clock allows."""
    torch = torch_version()
    found = kept_peaks.kept(identity(gpu, torch))
    if found is None:
        found = measure(gpu, spares)
        kept_peaks.keep(identity(gpu, torch), found)
    return {**found, "memory_clock_bytes_per_s": gpu.memory_bytes_per_s} if gpu.memory_bytes_per_s else found
