"""Step 2: build the candidate (and the incumbent, once) in a sandbox of their own."""

from __future__ import annotations

from typing import Any

from .. import backends, candidate
from ..backends import Built
from ..errors import CandidateError, CandidateFailure, Infrastructure
from ..request import CandidateSource
from .base import Evaluation

_incumbents: dict[str, Built] = {}
KEPT_BUILDS = 16


class Build:
    name = "build"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        try:
            backend = backends.get(evaluation.request.candidate.backend)
            evaluation.built = backend.build(evaluation.request.candidate)
        except CandidateError as error:
            raise CandidateFailure("build_failed", str(error)) from error
        evaluation.build_log = evaluation.built.log
        if evaluation.incumbent is not None:
            evaluation.incumbent_built = incumbent_build(evaluation.incumbent)
        size = sum(len(data) for data in evaluation.built.files.values())
        return f"built with {backend.name}: {size} bytes", {"bytes": size}


def incumbent_build(source: CandidateSource) -> Built:
    """Built once in a worker's life. That it does not build is no fault of the candidate."""
    key = candidate.sha256(source)
    if key not in _incumbents:
        try:
            built = backends.get(source.backend).build(source)
        except (CandidateFailure, CandidateError) as error:
            raise Infrastructure(f"the incumbent does not build: {error}") from error
        while len(_incumbents) >= KEPT_BUILDS:
            _incumbents.pop(next(iter(_incumbents)))
        _incumbents[key] = built
    return _incumbents[key]
