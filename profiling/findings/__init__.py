"""What stands out in a capture. A rule is a function from ``Facts`` to findings; a new one is one more entry here."""

from __future__ import annotations

from profiling.findings import graphs, pieces, tiny, waiting, waves
from profiling.findings.finding import Facts, Finding
from profiling.findings.kernels import label as label_kernel
from profiling.findings.label import Label, label

RULES = (pieces.find, tiny.find, graphs.find, waiting.find, waves.find)
MAX_FINDINGS = 8

__all__ = ["Facts", "Finding", "Label", "find", "label", "label_kernel"]


def find(facts: Facts) -> list[Finding]:
    """Findings, the most costly first."""
    if not facts.trace.devices:
        return []
    found = [finding for rule in RULES for finding in rule(facts)]
    return sorted(found, key=lambda finding: -finding.saving_ns)[:MAX_FINDINGS]
