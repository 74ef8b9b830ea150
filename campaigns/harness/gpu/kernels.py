"""Which kernels are a candidate's own, by their names: from its source, and against what libraries call theirs. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from ..request import CandidateSource
from ..scan.host import jit_defs

LIBRARIES = {
    "cuBLAS": r"cublas|nvjet|gemmk1|gemv|splitKreduce",
    "CUTLASS or xmma": r"cutlass|xmma|_gemm_|ampere_|sm\d\d_",
    "cuDNN": r"cudnn",
    "attention library": r"flash_|fmha|pytorch_flash|fused_attention",
    "torch": r"at::|at_cuda_detail|c10::|at_native",
    "CUB or Thrust": r"cub::|thrust::",
    "torch.compile": r"^triton_(poi|per|red|tem|mm|bmm|for)_",
}
HEAVY = ("cuBLAS", "CUTLASS or xmma", "cuDNN", "attention library")
_LIBRARY = {name: re.compile(pattern) for name, pattern in LIBRARIES.items()}
_TRANSFER = re.compile(r"^(Memcpy|Memset)", re.IGNORECASE)
_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_GLOBAL = re.compile(rf"__global__\s+{_BOUNDS}(?:\w+\s+)*?void\s+{_BOUNDS}(\w+)")


def own_names(source: CandidateSource) -> set[str]:
    """The kernels that the sources define: ``@triton.jit`` and ``@cute.kernel`` functions, ``__global__`` functions."""
    found: set[str] = set()
    for path, text in source.files.items():
        if path.endswith(".py"):
            found |= {function.name for function in jit_functions(text)}
        else:
            found |= set(_GLOBAL.findall(text))
    return found


def jit_functions(text: str) -> list[ast.FunctionDef]:
    """Functions with a decorator that makes a kernel of them."""
    try:
        return [function for _, function in jit_defs(ast.parse(text))]
    except (SyntaxError, ValueError):
        return []


def without_bodies(text: str, body: str = "pass") -> str:
    """The same source, every kernel's body replaced by nothing: what is still right then was not the kernels' work."""
    lines = text.splitlines(keepends=True)
    for function in sorted(jit_functions(text), key=lambda f: -f.lineno):
        first, last = function.body[0], function.body[-1]
        indent = " " * first.col_offset
        lines[first.lineno - 1 : last.end_lineno] = [f"{indent}{body}\n"]
    return "".join(lines)


def emptied(source: CandidateSource, body: str = "pass") -> CandidateSource:
    """A Python candidate with every kernel's body replaced."""
    files = {p: without_bodies(t, body) if p.endswith(".py") else t for p, t in source.files.items()}
    return CandidateSource(backend=source.backend, files=files)


def failing(source: CandidateSource) -> CandidateSource | None:
    """The same with kernels that fail when they are launched; None where nothing in the source could hide a failure."""
    hides = re.compile(r"^\s*except\b|\bsuppress\s*\(|\bfinally\s*:", re.MULTILINE)
    if not any(hides.search(text) for path, text in source.files.items() if path.endswith(".py")):
        return None
    return emptied(source, 'raise RuntimeError("this kernel was made to fail")')


def family(kernel: str, own: Iterable[str]) -> str:
    """``own``, ``transfer``, or the name of the library that the kernel looks to be from; ``unknown`` else."""
    if any(re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", kernel) for name in own):
        return "own"
    if _TRANSFER.match(kernel):
        return "transfer"
    return next((name for name, pattern in _LIBRARY.items() if pattern.search(kernel)), "unknown")


def table(profiled: list[dict[str, Any]], own: set[str]) -> list[dict[str, Any]]:
    """One row a kernel over all profiled calls: ``{"kernel", "calls", "total_us", "share", "own", "family", "streams"}``."""
    rows: dict[str, dict[str, Any]] = {}
    for call in profiled:
        for kernel in call["kernels"]:
            row = rows.setdefault(
                str(kernel["kernel"]), {"kernel": str(kernel["kernel"]), "calls": 0, "total_us": 0.0, "streams": []}
            )
            row["calls"] += int(kernel["calls"])
            row["total_us"] += float(kernel["total_us"])
            row["streams"] = sorted({*row["streams"], *map(int, kernel["streams"])})
    total = sum(row["total_us"] for row in rows.values())
    for name, row in rows.items():
        row["family"] = family(name, own)
        row["own"] = row["family"] == "own"
        row["share"] = round(row["total_us"] / total, 4) if total else 0.0
        row["total_us"] = round(row["total_us"], 3)
    return sorted(rows.values(), key=lambda row: -row["total_us"])


def shares(call: dict[str, Any], own: set[str]) -> dict[str, float]:
    """The share of device time of one call by family."""
    found: dict[str, float] = {}
    total = sum(float(kernel["total_us"]) for kernel in call["kernels"])
    for kernel in call["kernels"]:
        name = family(str(kernel["kernel"]), own)
        found[name] = found.get(name, 0.0) + float(kernel["total_us"]) / total if total else 0.0
    return found
