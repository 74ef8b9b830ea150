"""Triton kernels: ``run(x…, y…)`` on GPU tensors. Without a GPU they are interpreted, for correctness only."""

from __future__ import annotations

import importlib.util

from .. import sandbox
from ..request import CandidateSource
from .base import Built
from .python import build_python


class Triton:
    name = "triton"
    devices = ("cuda", "cpu")
    untimed = (
        "there is no NVIDIA GPU here: Triton was interpreted on a CPU, which says what is right and not what is fast"
    )

    def missing(self) -> str | None:
        if importlib.util.find_spec("triton") is None:
            return "triton is not installed: pip install triton (Linux only)"
        return None

    def build(self, source: CandidateSource) -> Built:
        return build_python(source)

    def spec(self, built: Built, limits: sandbox.Limits, cores: tuple[int, ...]) -> sandbox.Spec:
        """The sandbox of the interpreter; on a GPU a waiting process takes the files instead."""
        environment = {"TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": "/tmp/triton"}
        return sandbox.Spec(
            role="run_torch", limits=limits, files=built.files, packages=True, cores=cores, environment=environment
        )
