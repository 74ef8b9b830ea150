"""What was given, told by its looks, and handed to its importer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import TEXT_SUFFIXES, load_problem

from . import flashinfer_bench, gpu_mode, kernelbench
from .draft import Draft
from .errors import IntakeError
from .source import defined, identifier, parsed

FORMATS = {
    "folder": "a folder of ours: problem.toml, reference.py, inputs.py",
    "kernelbench": "KernelBench: class Model, get_inputs, get_init_inputs",
    "flashinfer_bench": "FlashInfer-Bench: Definition, Workloads, Solutions",
    "gpu_mode": "GPU MODE: reference.py, task.yml, submission.py",
}


def sniff(files: Mapping[str, str]) -> str:
    """One of ``FORMATS``. Raises ``IntakeError`` saying what was looked for."""
    names = {PurePosixPath(path).name for path in files}
    if "problem.toml" in files:
        return "folder"
    if "reference.py" in names and names & {"task.yml", "task.yaml"}:
        return "gpu_mode"
    if any(flashinfer_bench.is_definition(o) for o in flashinfer_bench.objects_in(files)):
        return "flashinfer_bench"
    python = [path for path in files if path.endswith(".py")]
    for path in python:
        found = defined(parsed(files[path], path))
        if {"Model", "get_inputs"} <= found:
            return "kernelbench"
        if {"ref_kernel", "generate_input"} <= found:
            return "gpu_mode"
    forms = "; ".join(FORMATS.values())
    raise IntakeError(f"this is none of what can be read ({forms}). There are: {', '.join(sorted(files))[:300]}.")


def convert(
    files: Mapping[str, str], name: str = "", format: str = "", should_stop: Callable[[], bool] | None = None
) -> Draft:
    """The draft of a problem from text files by path. ``name`` is a person's wish, ``format`` one of ``FORMATS``."""
    stop = should_stop or (lambda: False)
    found = format or sniff(files)
    if found == "folder":
        draft = own_folder(files)
    elif found == "kernelbench":
        draft = one_model(files, stop)
    elif found == "flashinfer_bench":
        draft = flashinfer_bench.convert(files, stop)
    elif found == "gpu_mode":
        if not any(PurePosixPath(p).name == "reference.py" for p in files):
            path = next(p for p in files if p.endswith(".py"))
            files = {**{k: v for k, v in files.items() if k != path}, "reference.py": files[path]}
        draft = gpu_mode.convert(files, name or "gpu_mode_problem", stop)
    else:
        raise IntakeError(f"unknown format {found!r}: one of {', '.join(FORMATS)}")
    return renamed(draft, name) if name else draft


def own_folder(files: Mapping[str, str]) -> Draft:
    kept = {path: text for path, text in files.items() if PurePosixPath(path).suffix in TEXT_SUFFIXES}
    try:
        problem = load_problem(kept)
    except ProblemError as error:
        raise IntakeError(f"{error}. docs/problems.md shows the format.") from None
    return Draft(problem.name, problem.title or problem.name, "a folder of ours", kept)


def one_model(files: Mapping[str, str], stop: Callable[[], bool]) -> Draft:
    models = [path for path in files if path.endswith(".py") and "Model" in defined(parsed(files[path], path))]
    if len(models) != 1:
        raise IntakeError(f"{len(models)} files define Model; a KernelBench problem is one file. Upload one at a time.")
    return kernelbench.convert(models[0], files[models[0]], stop)


def renamed(draft: Draft, wish: str) -> Draft:
    name = identifier(wish).lower()[:60]
    lines = draft.files["problem.toml"].split("\n")
    at = next((i for i, line in enumerate(lines) if line.partition("=")[0].strip() == "name"), None)
    if at is None:
        raise IntakeError("problem.toml: name: missing.")
    lines[at] = f'name = "{name}"'
    return Draft(name, draft.title, draft.format, {**draft.files, "problem.toml": "\n".join(lines)}, draft.notes)
