"""Where a candidate is judged: on a GPU where there is one and the problem has workloads for it, else on a core."""

from __future__ import annotations

import os
from math import prod

from .backends import Backend
from .gpu import devices
from .problem import Problem, Workload
from .request import EvaluationRequest

INTERPRETED_VALUES = 1 << 17
INTERPRETED_WORKLOADS = 4
PATIENCE = 20.0
"""An interpreted kernel may take so many times longer than a call usually may."""


def device_for(request: EvaluationRequest, backend: Backend, problem: Problem) -> str:
    """``cuda`` where the backend can, a GPU is visible (CUDA_VISIBLE_DEVICES counts) and the problem has work for it."""
    wanted = [request.device] if request.device else []
    if not wanted and "cuda" in backend.devices and problem.workloads_on("cuda") and devices.visible():
        interpreted = os.environ.get("TRITON_INTERPRET") == "1" and backend.name == "triton"
        wanted = [] if interpreted else ["cuda"]
    if not wanted:
        wanted = ["cpu"]
    return wanted[0] if wanted[0] in backend.devices else backend.devices[0]


def untimed(backend: Backend, device: str) -> str:
    """Why nothing is timed: a GPU language on a CPU is interpreted."""
    return str(getattr(backend, "untimed", "")) if device == "cpu" else ""


def small_ones(problem: Problem, workloads: list[Workload]) -> list[Workload]:
    """The few smallest workloads, hidden ones among them: an interpreter takes a second for what a GPU does in 10 µs."""

    def values(workload: Workload) -> int:
        return sum(prod(problem.shape(spec, workload)) for spec in problem.inputs + problem.outputs)

    ordered = sorted(workloads, key=values)
    fitting = [w for w in ordered if values(w) <= INTERPRETED_VALUES]
    return fitting[:INTERPRETED_WORKLOADS] or ordered[:1]
