"""From what a source takes and gives to a problem folder: shapes, workloads, tolerance, baseline, start kernel, README."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from campaigns.harness.request import CandidateSource
from campaigns.harness.scan import scan

from .errors import IntakeError
from .glue import INPUTS, REFERENCE, run_code
from .probing import Case, Tensor
from .shapes import expression

LEAST = {"float64": 1e-10, "float32": 2e-5, "float16": 2e-3, "bfloat16": 8e-3}
USUAL = {"float64": 1e-8, "float32": 1e-4, "float16": 4e-3, "bfloat16": 1.6e-2}
MOST = 0.1
MARGIN = 4.0
"""The tolerance over the error that the source itself has in its own precision."""


@dataclass
class Draft:
    """A problem to be: its folder as text, and what a person should know of how it came to be."""

    name: str
    title: str
    format: str
    files: dict[str, str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Work:
    """A workload: arguments of the source, and where it is measured."""

    args: dict[str, int]
    device: str = "cpu"
    hidden: bool = False
    timed: bool = True


@dataclass
class Shaped:
    """Tensors with shapes as expressions; ``extra`` are axes that no expression was found for, by case."""

    inputs: list[tuple[str, str, list[str | int]]]
    outputs: list[tuple[str, str, list[str | int]]]
    extra: dict[str, list[int]]


def shaped(cases: Sequence[Case]) -> Shaped:
    """Shapes over the arguments of all cases. Raises ``IntakeError`` where names, types or ranks differ."""
    extra: dict[str, list[int]] = {}
    args = [case.args for case in cases]

    def side(rows: list[list[Tensor]]) -> list[tuple[str, str, list[str | int]]]:
        found = []
        for column in zip(*rows, strict=True):
            first = column[0]
            if any((t.name, t.dtype, len(t.shape)) != (first.name, first.dtype, len(first.shape)) for t in column):
                raise IntakeError(f"{first.name} has another name, type or number of dimensions with other arguments.")
            shape: list[str | int] = []
            for index, values in enumerate(zip(*(t.shape for t in column), strict=True)):
                entry = expression(values, args)
                if entry is None:
                    entry = f"{first.name}_{index}"
                    extra[entry] = list(values)
                shape.append(entry)
            found.append((first.name, first.dtype, shape))
        return found

    if len({(len(c.inputs), len(c.outputs)) for c in cases}) > 1:
        raise IntakeError("the number of inputs or outputs changes with the arguments.")
    return Shaped(side([c.inputs for c in cases]), side([c.outputs for c in cases]), extra)


def tolerance(cases: Sequence[Case], dtype: str) -> float:
    """A little above the error of the source in its own precision, else what is usual for the type."""
    if any(c.errors is None for c in cases):
        return USUAL.get(dtype, 1e-4)
    errors = [c.errors[t.name] for c in cases if c.errors is not None for t in c.outputs if t.dtype == dtype] or [0.0]
    wanted = max(MARGIN * max(errors), LEAST.get(dtype, 2e-5))
    power = 10.0 ** math.floor(math.log10(wanted))
    return min(MOST, next(round(step * power, 15) for step in (1, 2, 5, 10) if step * power >= wanted * 0.999))


def toml_of(
    name: str,
    title: str,
    summary: str,
    shapes: Shaped,
    axes: list[str],
    works: Sequence[tuple[Work, dict[str, int]]],
    cases: Sequence[Case],
    start: dict[str, str],
) -> str:
    floats = [d for _, d, _ in shapes.outputs + shapes.inputs if "float" in d] or ["float32"]
    dtype = floats[0]
    kinds = sorted({d for _, d, _ in shapes.outputs if "float" in d} | {dtype})
    lines = [f"name = {quoted(name)}", f"title = {quoted(title)}", f"summary = {quoted(summary)}"]
    lines += [f"dtype = {quoted(dtype)}", f"axes = [{', '.join(map(quoted, axes))}]"]
    for key, rows in (("inputs", shapes.inputs), ("outputs", shapes.outputs)):
        lines.append(f"{key} = [")
        for tensor, kind, shape in rows:
            entries = ", ".join(str(e) if isinstance(e, int) else quoted(e) for e in shape)
            lines.append(f"  {{ name = {quoted(tensor)}, shape = [{entries}], dtype = {quoted(kind)} }},")
        lines.append("]")
    lines += ["", "[tolerance]", *[f"{kind} = {tolerance(cases, kind):g}" for kind in kinds]]
    lines += [
        "",
        "[baselines]",
        'eager = { file = "baselines/eager.py", title = "the source as it is, eager PyTorch" }',
    ]
    if start:
        lines += ["", "[start]", *[f"{backend} = {quoted(path)}" for backend, path in start.items()]]
    for number, (work, values) in enumerate(works):
        label = "_".join(f"{a[:12]}{values[a]}" for a in axes)[:60]
        lines += ["", "[[workloads]]", f"name = {quoted(f'{work.device}_{number}_{label}')}"]
        lines += [f"axes = {{ {', '.join(f'{a} = {values[a]}' for a in axes)} }}", f'device = "{work.device}"']
        lines += ["hidden = true"] * work.hidden + ["timed = false"] * (not work.timed)
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A TOML basic string."""
    clean = "".join(c if c >= " " and c != "\x7f" else " " for c in text)
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"') + '"'


def assemble(
    *,
    name: str,
    title: str,
    summary: str,
    format: str,
    adapter: str,
    args: list[str],
    cases: Sequence[Case],
    works: Sequence[Work],
    start: dict[str, str] | None = None,
    needs_args: bool = True,
    notes: Sequence[str] = (),
) -> Draft:
    """The folder. ``start`` are further start kernels by backend; the source itself is the torch one where it can be."""
    notes = [*notes, *dict.fromkeys(note for case in cases for note in case.notes)]
    shapes = shaped(cases)
    axes = args + list(shapes.extra) or ["fixed"]
    works = [w for w in works if not shapes.extra or any(w.args == c.args for c in cases)]
    if shapes.extra:
        notes.append(
            f"no formula was found for {', '.join(shapes.extra)}: only sizes that were tried became workloads."
        )
    valued = [(w, {a: value_of(a, w, cases, shapes) for a in axes}) for w in works]
    wide = all(c.errors is not None for c in cases)
    if not wide:
        reason = next(c.not_wide for c in cases if c.errors is None)
        notes.append(f"the reference is computed in the source's own precision; in float64 it fails: {reason}")
    baked = f"\n_ARGS = {args!r}\n_IN_FLOAT64 = {wide!r}\n"
    inputs, outputs = [t[0] for t in shapes.inputs], [t[0] for t in shapes.outputs]
    found, plain = argument_code(args, shapes, valued, needs_args)
    run = run_code(inputs, outputs, found)
    files = {
        "inputs.py": adapter + baked + INPUTS,
        "reference.py": adapter + baked + REFERENCE,
        "baselines/eager.py": adapter + run,
    }
    kernels = {}
    if not plain:
        notes.append("no start kernel in torch: the sizes that the source needs cannot be read from its tensors.")
    for backend, text in {**({"torch": adapter + run} if plain else {}), **(start or {})}.items():
        if why := blocked(backend, text):
            notes.append(f"the source is no start kernel in {backend}: {why}")
            continue
        kernels[backend] = "start/kernel.py" if backend == "torch" else f"start/{backend}_kernel.py"
        files[kernels[backend]] = text
    files["problem.toml"] = toml_of(name, title, summary, shapes, axes, valued, cases, kernels)
    files["README.md"] = readme(title, summary, format, notes)
    return Draft(name, title, format, files, list(notes))


def blocked(backend: str, text: str) -> str:
    """Why a candidate with this text would be flagged; nothing where it would not."""
    found = scan(CandidateSource(backend=backend, files={"kernel.py": text}))
    return next((f"line {f.line}: {f.evidence}" for f in found if f.severity == "block"), "")


def value_of(axis: str, work: Work, cases: Sequence[Case], shapes: Shaped) -> int:
    if axis in work.args:
        return work.args[axis]
    if axis in shapes.extra:
        return next(v for c, v in zip(cases, shapes.extra[axis], strict=True) if c.args == work.args)
    return 1


def argument_code(
    args: list[str], shapes: Shaped, valued: Sequence[tuple[Work, dict[str, int]]], needed: bool
) -> tuple[str, bool]:
    """How ``run`` finds the source's arguments: read from shapes, else by a table of the shapes of all workloads."""
    if not needed or not args:
        return "{}", True
    read: dict[str, str] = {}
    for name, _, shape in shapes.inputs + shapes.outputs:
        for index, entry in enumerate(shape):
            if isinstance(entry, str) and entry in args:
                read.setdefault(entry, f"{name}.shape[{index}]")
    if set(read) == set(args):
        return "{" + ", ".join(f'"{a}": {read[a]}' for a in args) + "}", True
    table = {tuple(values[a] for a in read): {a: values[a] for a in args} for _, values in valued}
    if len(table) < len({tuple(sorted(v.items())) for _, v in valued}):
        missing = ", ".join(sorted(set(args) - set(read)))
        raise IntakeError(
            f"argument {missing} is in no shape, and two workloads differ in it alone: a kernel could not tell. "
            "Give it as a tensor, or the same value everywhere."
        )
    key = "(" + "".join(f"{read[a]}, " for a in read) + ")"
    return f"{table!r}[{key}]", False


def readme(title: str, summary: str, format: str, notes: Sequence[str]) -> str:
    lines = [f"# {title}", "", summary, "", f"Imported from {format}. `reference.py` is the source as it was given, and", 
             "how it is asked."]  # fmt: skip
    if notes:
        lines += ["", "Notes of the import", "", *[f"- {note}" for note in notes]]
    return "\n".join(lines) + "\n"
