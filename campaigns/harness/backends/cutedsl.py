"""CuTe DSL kernels (nvidia-cutlass-dsl): ``run(x…, y…)`` on GPU tensors."""

from __future__ import annotations

import importlib.util

from .. import sandbox
from ..gpu import devices
from ..request import CandidateSource
from .base import Built
from .python import build_python


class CuteDsl:
    name = "cutedsl"
    devices = ("cuda",)

    def missing(self) -> str | None:
        if importlib.util.find_spec("cutlass") is None:
            return "nvidia-cutlass-dsl is not installed: pip install 'autoresearch-web[cutedsl]'"
        return None if devices.visible() else "no NVIDIA GPU is visible here, and CuTe DSL has no interpreter"

    def build(self, source: CandidateSource) -> Built:
        return build_python(source)

    def spec(self, built: Built, limits: sandbox.Limits, cores: tuple[int, ...]) -> sandbox.Spec:
        return sandbox.Spec(role="run_torch", limits=limits, files=built.files, packages=True, cores=cores)
