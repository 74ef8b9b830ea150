"""Kernels for the tiny scenario, made from the bundled start kernels and by hand."""

from __future__ import annotations

import msgspec

from campaigns.harness import candidate, problem
from campaigns.harness.request import CandidateSource
from campaigns.scenarios import catalogue
from campaigns.scenarios.request import StackKernel, StackRequest


def request(*kernels, **options):
    scenario = catalogue.find("tiny")
    options = {"bases": ["eager"], "draws": 2, **options}
    return StackRequest(scenario="tiny", files=scenario.problem.files, kernels=list(kernels), **options)


ONE_STEP = "steps = 1, batch = 1, layers = 3"


def with_axes(told, text):
    """The same scenario, smaller."""
    toml = told.files["problem.toml"].replace("steps = 4, batch = 1, layers = 3", text)
    return msgspec.structs.replace(told, files={**told.files, "problem.toml": toml})


def kernel(operator, files, backend="cpp", **options):
    scenario = catalogue.find("tiny")
    axes = list(scenario.axes_of(operator).values()) if operator in scenario.operators else []
    source = CandidateSource(backend=backend, files=files)
    return StackKernel(
        **{
            "id": f"{operator}-{backend}",
            "operator": operator,
            "label": operator,
            "source": source,
            "axes": axes,
            **options,
        }
    )


def tuned(operator, values):
    """The bundled start kernel with better parameters."""
    from campaigns import catalog

    files = problem.read_folder(catalog.find(operator))
    source = CandidateSource(backend="cpp", files={"kernel.cpp": files["start/kernel.cpp"]})
    return kernel(operator, candidate.with_values(source, values).files)


def rmsnorm():
    return tuned("rmsnorm", {"LANES": 16, "ROW_BLOCK": 1, "FUSE": 1})


def mla_decode():
    """The hand-written one of the demo: reads the cache once."""
    from campaigns import catalog

    return kernel("mla_decode", {"kernel.cpp": (catalog.find("mla_decode") / "examples/1_read_once.cpp").read_text()})
