"""Step 2: build the candidate (and the incumbent, once) in a sandbox of their own."""

from __future__ import annotations

from typing import Any

from .. import backends
from ..backends import Built
from ..errors import CandidateError, CandidateFailure, Infrastructure
from ..request import CandidateSource
from ..scan.linked import scan_linked
from .base import Evaluation


class Build:
    name = "build"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        try:
            evaluation.built = backends.built(evaluation.request.candidate)
        except CandidateError as error:
            raise CandidateFailure("build_failed", str(error)) from error
        evaluation.build_log = evaluation.built.log
        self.look_at_names(evaluation, evaluation.built)
        if evaluation.incumbent is not None:
            evaluation.incumbent_built = incumbent_build(evaluation.incumbent)
        size = sum(len(data) for data in evaluation.built.files.values())
        return f"built with {evaluation.request.candidate.backend}: {size} bytes", {"bytes": size}

    def look_at_names(self, evaluation: Evaluation, built: Built) -> None:
        """Not for CUDA, whose own runtime is in the library and asks for threads and files."""
        if evaluation.request.candidate.backend != "cpp":
            return
        for finding in scan_linked(built.files[built.entry]):
            evaluation.add_finding(finding)
        blocking = [f for f in evaluation.findings if f.severity == "block"]
        if blocking:
            raise CandidateFailure("flagged", blocking[0].evidence)


def incumbent_build(source: CandidateSource) -> Built:
    """That it does not build is no fault of the candidate."""
    try:
        return backends.built(source)
    except (CandidateFailure, CandidateError) as error:
        raise Infrastructure(f"the incumbent does not build: {error}") from error
