"""Reads sources for what a kernel has no business with. The sandbox is what protects; the scan is what explains.

It looks at code, never at words in comments or strings, and ordinary code must pass: a blocking finding on an honest
candidate is a fault of the same weight as a miss.
"""

from __future__ import annotations

from ..report import Finding
from ..request import CandidateSource
from .cpp import scan_cpp
from .cuda import scan_cuda
from .effort import TooInvolved
from .python import scan_python
from .substitution import scan_substitution
from .text import scan_text

MAX_FINDINGS = 50
MAX_CHARACTERS = 1 << 20
PYTHON_DSLS = ("triton", "cutedsl")
COMPILED = ("cpp", "cuda")
"""Beside such sources no Python is run: a script that builds or tests them may do what it likes. To include it is blocked."""
CPP = (".cpp", ".cu", ".cuh", ".h", ".hpp")


def scan(source: CandidateSource, outputs: int = 1) -> list[Finding]:
    """All findings, the most severe first. ``outputs``: how many of the last parameters of ``run`` it writes."""
    found: list[Finding] = []
    try:
        found += [f for path, text in sorted(source.files.items()) for f in scan_text(path, text)]
        found += read(source, outputs)
    except (TooInvolved, RecursionError):
        text = "too long or too deeply nested to be read: split it into small functions, without generated code"
        found.append(Finding(rule="unreadable", severity="block", evidence=text))
    order = {"block": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda f: (order[f.severity], f.path or "", f.line or 0))[:MAX_FINDINGS]


def read(source: CandidateSource, outputs: int) -> list[Finding]:
    """What its code shows, as Python trees or C++ tokens."""
    if sum(map(len, source.files.values())) > MAX_CHARACTERS:
        raise TooInvolved
    found: list[Finding] = []
    if source.backend in PYTHON_DSLS:
        found += scan_substitution({p: t for p, t in source.files.items() if p.endswith(".py")}, outputs)
    elif source.backend == "cuda":
        found += scan_cuda({p: t for p, t in sorted(source.files.items()) if not p.endswith(".py")})
    compiled = source.backend in COMPILED
    for path, text in sorted(source.files.items()):
        if path.endswith(CPP) or (compiled and not path.endswith(".py")):
            found += scan_cpp(path, text)
        elif path.endswith(".py") and not compiled:
            found += scan_python(path, text)
    return found
