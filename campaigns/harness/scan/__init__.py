"""Reads sources for what a kernel has no business with. The sandbox is what protects; the scan is what explains.

It looks at code, never at words in comments or strings, and ordinary code must pass: a blocking finding on an honest
candidate is a fault of the same weight as a miss.
"""

from __future__ import annotations

from ..report import Finding
from ..request import CandidateSource
from .cpp import scan_cpp
from .cuda import scan_cuda
from .python import scan_python
from .substitution import scan_substitution

MAX_FINDINGS = 50
PYTHON_DSLS = ("triton", "cutedsl")
CPP = (".cpp", ".cu", ".cuh", ".h", ".hpp")


def scan(source: CandidateSource, outputs: int = 1) -> list[Finding]:
    """All findings, the most severe first. ``outputs``: how many of the last parameters of ``run`` it writes."""
    found: list[Finding] = []
    if source.backend in PYTHON_DSLS:
        found += scan_substitution({p: t for p, t in source.files.items() if p.endswith(".py")}, outputs)
    elif source.backend == "cuda":
        found += scan_cuda({p: t for p, t in sorted(source.files.items()) if p.endswith(CPP)})
    for path, text in sorted(source.files.items()):
        if path.endswith(".py"):
            found += scan_python(path, text)
        elif path.endswith(CPP):
            found += scan_cpp(path, text)
    order = {"block": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda f: (order[f.severity], f.path or "", f.line or 0))[:MAX_FINDINGS]
