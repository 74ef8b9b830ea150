"""Step 1: read the source before anything of it runs."""

from __future__ import annotations

from typing import Any

from ..errors import CandidateFailure
from ..scan import scan
from .base import Evaluation


class Scan:
    name = "scan"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        for finding in scan(evaluation.request.candidate, len(evaluation.problem.outputs)):
            evaluation.add_finding(finding)
        blocking = [f for f in evaluation.findings if f.severity == "block"]
        counts = {s: sum(f.severity == s for f in evaluation.findings) for s in ("note", "warning", "block")}
        if blocking:
            first = blocking[0]
            where = f"{first.path}:{first.line}: " if first.path else ""
            raise CandidateFailure("flagged", f"{where}{first.evidence}")
        return "nothing that blocks" if not evaluation.findings else f"{len(evaluation.findings)} to note", counts
