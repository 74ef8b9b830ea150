"""Approved kernels as the files of a Python package that works without this product."""

from __future__ import annotations

import hashlib
import json
import keyword
import pprint
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaigns.harness import candidate
from campaigns.harness.backends import extension
from campaigns.harness.backends.cpp import FLAGS
from campaigns.harness.backends.cuda import FLAGS as CUDA_FLAGS
from campaigns.harness.problem import Problem, TensorSpec
from campaigns.models import Kernel

from . import shelf

RUNTIME = Path(__file__).parent / "runtime"
BUILD = {
    "cpp": ["g++", *FLAGS],
    "cuda": ["nvcc", *CUDA_FLAGS, "-gencode=arch=compute_{arch},code=sm_{arch}"],
}
"""As the harness builds them. The package puts the GPU's architecture in the place of ``{arch}``."""
PYTHON = ("torch", "triton")
Files = dict[str, str]


class ExportError(Exception):
    """These kernels cannot be exported so; the message says why and what to do."""


def module_name(operator: str) -> str:
    """A name that Python takes, of an operator's."""
    name = re.sub(r"\W", "_", operator, flags=re.ASCII)
    return f"op_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) or name.startswith("_") else name


def files_of(name: str, kernels: list[Kernel], fallbacks: Mapping[str, str]) -> Files:
    """The package's tree: path → text. ``fallbacks`` names a "module:function" or a baseline for an operator."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,60}", name) or keyword.iskeyword(name):
        raise ExportError(f"{name!r} is no package's name: small letters, digits and underscores, as approved_kernels.")
    operators: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        operators.setdefault(kernel.operator, []).append(kernel)
    if unknown := sorted(set(fallbacks) - set(operators)):
        raise ExportError(f"There is a fallback for {unknown[0]}, and no kernel of that operator is exported.")
    names = {module_name(operator): operator for operator in operators}
    if len(names) != len(operators) or names.keys() & {"apply", "undo", "operators"}:
        raise ExportError(f"These operators' names cannot stand in one package: {', '.join(sorted(operators))}.")
    inner: Files = {f"_runtime/{p.name}": p.read_text() for p in sorted(RUNTIME.glob("*.py"))}
    provenance = {}
    for module, operator in sorted(names.items()):
        inner |= _operator(module, operators[operator], fallbacks.get(operator, ""))
        provenance[operator] = [told(k) for k in operators[operator]]
    inner["__init__.py"] = _init(sorted(names))
    inner["provenance.json"] = json.dumps(provenance, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    inner["py.typed"] = ""
    version = "1+" + hashlib.sha256(json.dumps(inner, sort_keys=True).encode()).hexdigest()[:12]
    _check_python(inner)
    tree = {f"{name}/{path}": text for path, text in inner.items()}
    tree["pyproject.toml"] = _pyproject(name, version)
    tree["README.md"] = _readme(name, names, operators)
    return dict(sorted(tree.items()))


def _check_python(files: Files) -> None:
    """What was generated must be Python: an axis may have a name that Python keeps for itself."""
    for path, text in files.items():
        if path.endswith(".py") and "/" not in path:
            try:
                compile(text, path, "exec")
            except SyntaxError as error:
                raise ExportError(
                    f"{path}: line {error.lineno}: {error.msg}. Its names cannot be written in Python."
                ) from None


def version_of(files: Files) -> str:
    return re.search(r'^version = "(.*)"$', files["pyproject.toml"], re.MULTILINE)[1]  # type: ignore[index]


def told(kernel: Kernel) -> dict[str, Any]:
    """Where a kernel comes from, who answers for it, and what was measured."""
    review, attempt = kernel.review, kernel.review.attempt
    report = attempt.parsed_report()
    assert report is not None
    return {
        "kernel": review.sha256[:12],
        "signed_sha256": review.sha256,
        "source_sha256": candidate.sha256(attempt.candidate()),
        "problem_sha256": attempt.campaign.problem_sha256,
        "campaign": f"{attempt.campaign_id}: {attempt.campaign.title}",
        "attempt": attempt.number,
        "what": attempt.title,
        "idea": attempt.idea.text if attempt.idea else "",
        "idea_by": attempt.idea.author.get_username() if attempt.idea and attempt.idea.author else "",
        "approved_by": review.reviewer.get_username() if review.reviewer else "",
        "approved_at": review.created_at.isoformat(),
        "range": review.range,
        "backend": kernel.backend,
        "hardware": kernel.hardware,
        "processor": report.host.processor,
        "versions": report.host.versions,
        "harness": report.harness_version,
        "baseline": report.baseline,
        "speedup": [attempt.speedup_lo, attempt.speedup, attempt.speedup_hi],
    }


def _operator(module: str, kernels: list[Kernel], fallback: str) -> Files:
    """One operator: its module, the kernels' sources, the baseline that serves everywhere else."""
    newest = max(kernels, key=lambda k: k.review.created_at)
    problem = shelf.problem_of(newest)
    files: Files = {}
    entries = []
    for kernel in kernels:
        own = shelf.problem_of(kernel)
        if _interface(own) != _interface(problem):
            raise ExportError(
                f"{problem.name}: the kernels {newest} and {kernel} are for different inputs, outputs or axes. "
                "Export them apart, or withdraw one."
            )
        entry = shelf.entry(kernel, own) | _sources(kernel)
        files |= {f"kernels/{entry['folder']}/{path}": text for path, text in kernel.review.attempt.files.items()}
        entries.append(entry)
    default, more = _fallback(module, newest, problem, fallback)
    spec = {
        "name": module,
        "axes": problem.axes,
        "inputs": [_tensor(t) for t in problem.inputs],
        "outputs": [_tensor(t) for t in problem.outputs],
        "fallback": default,
        "kernels": sorted(entries, key=lambda e: e["id"]),
    }
    return {**files, **more, f"{module}.py": _module(module, problem, kernels, spec)}


def _interface(problem: Problem) -> Any:
    return problem.axes, [_tensor(t) for t in problem.inputs], [_tensor(t) for t in problem.outputs]


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype}


def _sources(kernel: Kernel) -> dict[str, Any]:
    source = kernel.review.attempt.candidate()
    if kernel.backend not in BUILD and kernel.backend not in PYTHON:
        raise ExportError(f"{kernel}: the backend {kernel.backend} cannot be exported yet. Leave this kernel out.")
    if kernel.backend == "cuda" and extension.is_extension(source):
        raise ExportError(f"{kernel}: a torch extension cannot be exported yet. Leave this kernel out.")
    entry = candidate.entry_path(source)  # and that no path leaves its folder
    for path in source.files:
        if not all(re.fullmatch(r"\w[\w.+-]*", part, re.ASCII) for part in path.split("/")):
            raise ExportError(f"{kernel}: the file name {path!r} cannot stand in a package.")
    return {"folder": kernel.review.sha256[:12], "entry": entry, "build": BUILD.get(kernel.backend)}


def _fallback(module: str, kernel: Kernel, problem: Problem, wanted: str) -> tuple[dict[str, str], Files]:
    """The person's default: what they name now, else the baseline that they chose for the campaign."""
    if ":" in wanted:
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", wanted):
            raise ExportError(f"{wanted!r}: a function is named as package.module:function.")
        return {"function": wanted}, {}
    name = wanted or kernel.review.attempt.campaign.baseline
    if name not in problem.baselines:
        raise ExportError(
            f"{problem.name} has no baseline {name!r}: there are {', '.join(problem.baselines)}. "
            "Another function is named as package.module:function."
        )
    return {"file": "baseline.py"}, {f"baselines/{module}/baseline.py": problem.files[problem.baselines[name].file]}


def _module(module: str, problem: Problem, kernels: list[Kernel], spec: dict[str, Any]) -> str:
    shapes = "\n".join(
        f"        {t.name!r}: ({' '.join(f'int({e}),' for e in t.shape)})," for t in problem.inputs + problem.outputs
    )
    ranges = "\n".join(
        f"    {k.review.sha256[:12]}  {k.backend} on {_line(k.hardware)}; "
        + "; ".join(shelf.served(k, shelf.problem_of(k)))
        for k in kernels
    )
    signature = ", ".join(t.name for t in problem.inputs)
    results = ", ".join(t.name for t in problem.outputs)
    return f'''"""{_line(problem.title or problem.name)}. {_line(problem.summary)}

    {module}({signature}) -> {results}

Kernels, where each was tested right and approved; elsewhere the fallback serves:

{ranges}
"""

from __future__ import annotations

from math import ceil, floor
from pathlib import Path

from ._runtime.dispatch import Operator


def _shapes({", ".join(problem.axes)}):
    return {{
{shapes}
    }}


SPEC = {pprint.pformat(spec, width=116, sort_dicts=False)}

{module} = Operator(SPEC, _shapes, Path(__file__).parent)
'''


def _line(text: str) -> str:
    """Text from outside inside a docstring: one line that can neither end it nor escape."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"', "'")


def _init(modules: list[str]) -> str:
    imports = "\n".join(f"from .{module} import {module}" for module in modules)
    table = ", ".join(f'"{module}": {module}' for module in modules)
    names = ", ".join(f'"{n}"' for n in sorted([*modules, "apply", "operators", "undo"]))
    return f'''"""Approved kernels. Call an operator, or ``apply`` it to a program's own function. See README.md."""

from __future__ import annotations

from ._runtime import patching as _patching
{imports}

operators = {{{table}}}

__all__ = [{names}]


def apply(targets, adapt=None):
    """Put operators in the place of functions: ``apply({{"{modules[0]}": "model.layers:function"}})``. All or none.

    Gives a handle with ``undo()``, which is a context manager too.
    """
    return _patching.apply(operators, targets, adapt)


def undo():
    """Take out everything that ``apply`` put in place."""
    _patching.undo()
'''


def _pyproject(name: str, version: str) -> str:
    return f"""[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "{name.replace("_", "-")}"
version = "{version}"
description = "Kernels that people approved, with dispatch by range and a fallback."
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["torch"]

[tool.setuptools.packages.find]
include = ["{name}*"]
namespaces = true

[tool.setuptools.package-data]
"*" = ["*"]
"""


README = """# NAME

Kernels that people approved. Each serves the shapes, dtypes and hardware for which it was tested right and found
faster; every other call goes to the fallback. Made by Autoresearch Web, and works without it: torch is enough, and g++
(nvcc for CUDA) once, when a compiled kernel is first used. `provenance.json` says where each comes from.

```python
import NAME

y = NAME.FIRST(…)             # a new output; out=… writes into yours
print(NAME.FIRST.explain(…))  # which kernel serves this call, or why none does
NAME.apply({"FIRST": "model.layers:function"})  # in the place of your own function, which becomes the fallback
NAME.undo()
```

`apply(…, adapt={…})` takes a function that turns your arguments into the operator's inputs, or gives None to leave the
call alone. `set_fallback(function)` changes what serves elsewhere. A call that wants a gradient, or hands over tensors
that are not plain, contiguous and aligned, goes to the fallback. Built files lie in `$APPROVED_KERNELS_CACHE`, else in
the user's cache folder.

| operator | kernel | backend, hardware | serves | speed-up, 95 % | approved by |
|---|---|---|---|---|---|
"""


def _readme(name: str, names: dict[str, str], operators: dict[str, list[Kernel]]) -> str:
    rows = [_row(module, kernel) for module, operator in sorted(names.items()) for kernel in operators[operator]]
    return README.replace("NAME", name).replace("FIRST", min(names)) + "".join(rows)


def _row(module: str, kernel: Kernel) -> str:
    about = told(kernel)
    lo, value, hi = about["speedup"]
    band = f"{value:.2f}x ({lo:.2f} to {hi:.2f})" if None not in (lo, value, hi) else "not measured"
    served = "; ".join(shelf.served(kernel, shelf.problem_of(kernel)))
    cells = [module, about["kernel"], f"{kernel.backend}, {kernel.hardware}", served, band, about["approved_by"]]
    return "| " + " | ".join(_line(c).replace("|", "\\|") for c in cells) + " |\n"
