"""Reads sources for what a kernel has no business with. The sandbox is what protects; the scan is what explains.

It looks at code, never at words in comments or strings, and ordinary code must pass: a blocking finding on an honest
candidate is a fault of the same weight as a miss.
"""

from __future__ import annotations

from ..report import Finding
from ..request import CandidateSource
from .cpp import scan_cpp
from .python import scan_python

MAX_FINDINGS = 50


def scan(source: CandidateSource) -> list[Finding]:
    """All findings, the most severe first."""
    found: list[Finding] = []
    for path, text in sorted(source.files.items()):
        if path.endswith(".py"):
            found += scan_python(path, text)
        elif path.endswith((".cpp", ".cu", ".cuh", ".h", ".hpp")):
            found += scan_cpp(path, text)
    order = {"block": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda f: (order[f.severity], f.path or "", f.line or 0))[:MAX_FINDINGS]
