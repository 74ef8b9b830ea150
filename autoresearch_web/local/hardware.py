"""What this machine can evaluate on: always ``cpu``, and each kind of NVIDIA GPU that is visible here."""

from __future__ import annotations

from campaigns.harness.gpu.devices import by_kind, visible


def gpu_names() -> list[str]:
    """Names as the driver gives them, one for each visible GPU; empty where there is no driver."""
    return [gpu.name for gpu in visible()]


def local_kinds() -> list[str]:
    return [*by_kind(), "cpu"]
