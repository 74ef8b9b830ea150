"""FlashInfer-Bench: a Definition, and Workloads and Solutions for it, as JSON, JSON lines, or a list.

Variable axes become axes; random inputs are drawn; scalars that are the same everywhere are part of the problem, others
become tensors of one value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from campaigns.harness.problem import ITEMSIZE_BYTES

from .draft import Draft, Work, assemble
from .errors import IntakeError
from .glue import adapter, run_code
from .probing import Case, Probe, probe
from .source import identifier, on_any_device, parsed, require

FORM = "A Definition has name, axes, inputs, outputs and reference (Python text with a function run)."
MAX_OBJECTS = 5000
MAX_WORKLOADS = 24
CPU_VALUES = 1 << 22
SMALL_AXES = (16, 5, 33, 64)
"""Sizes of variable axes that are tried on a CPU where the workloads given are too large for it."""

GLUE = """

_source_run = run


def _draw(args, device, seed):
    generator = _torch.Generator(device).manual_seed(seed)
    found = {}
    for name, shape, dtype in _TENSORS:
        sizes = [args[entry] if isinstance(entry, str) else entry for entry in shape]
        if dtype == "bool":
            found[name] = _torch.rand(sizes, generator=generator, device=device) < 0.5
        else:
            found[name] = _torch.randn(sizes, generator=generator, device=device).to(getattr(_torch, dtype))
    for name, (least, most, dtype) in _RANGES.items():
        value = _torch.rand((), generator=generator, device=device) * (most - least) + least
        found[name] = value.to(getattr(_torch, dtype))
    return found


def _answer(inputs, args, wide):
    global _DEVICE
    _DEVICE = str(next(iter(inputs.values())).device)
    given = {name: _wide(_own(tensor)) if wide else _own(tensor) for name, tensor in inputs.items()}
    given.update({name: given[name].item() for name in _RANGES})
    with _torch.no_grad():
        return _named(_source_run(**{name: given[name] if name in given else _SCALARS[name] for name in _ORDER}))
"""


def objects_in(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """All JSON objects of all files: whole files, lists, or one a line."""
    found: list[Any] = []
    for path, text in files.items():
        if not path.endswith((".json", ".jsonl", ".txt")):
            continue
        try:
            value = json.loads(text)
            found += value if isinstance(value, list) else [value]
        except ValueError:
            found += lines_of(path, text)
        except RecursionError:
            raise IntakeError(f"{path}: nested too deeply.") from None
        if len(found) > MAX_OBJECTS:
            raise IntakeError(f"more than {MAX_OBJECTS} objects; leave some workloads out.")
    return [o for o in found if isinstance(o, dict)]


def lines_of(path: str, text: str) -> Iterable[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise IntakeError(f"{path}, line {number}: not JSON: {error}") from None


def is_definition(value: Mapping[str, Any]) -> bool:
    return {"axes", "inputs", "outputs", "reference"} <= set(value) and isinstance(value["reference"], str)


def convert(files: Mapping[str, str], should_stop: Callable[[], bool]) -> Draft:
    """The draft of a problem. Raises ``IntakeError``; foreign code runs in a sandbox only."""
    objects = objects_in(files)
    definitions = [o for o in objects if is_definition(o)]
    if len(definitions) != 1:
        raise IntakeError(f"{len(definitions)} Definitions; one problem is made of one. {FORM}")
    definition = definitions[0]
    name = str(definition.get("name") or "definition")
    require(parsed(definition["reference"], f"{name}: reference"), ("run",), f"{name}: reference", FORM)
    mine = [o for o in objects if o.get("definition") == name or "uuid" in o]
    works: list[dict[str, Any]] = []
    notes: list[str] = []
    for o in mine:
        workload = o.get("workload") if isinstance(o.get("workload"), dict) else (o if "uuid" in o else None)
        if workload is not None and len(works) < MAX_WORKLOADS:
            works.append(workload)
    form = Form(definition, works)
    constants: dict[str, Any] = {
        "_TENSORS": form.tensors,
        "_SCALARS": form.scalars,
        "_RANGES": form.ranges,
        "_ORDER": form.order,
        "_OUTPUTS": [o for o, _ in form.outputs],
    }
    source = on_any_device(definition["reference"])
    with probe(adapter(source, GLUE, constants), should_stop) as asked:
        cases, rows = cases_of(asked, form)
    checked_outputs(form, cases)
    constants["_CLONE"] = any(c.writes for c in cases)
    if form.small:
        notes.append("the workloads are too large for a CPU, or there are none: smaller ones were added for it")
    return assemble(
        name=identifier(name).lower(),
        title=name.replace("_", " ")[:100],
        summary=str(definition.get("description") or f"{definition.get('op_type', '')} of FlashInfer-Bench").strip()[
            :200
        ],
        format="FlashInfer-Bench",
        adapter=adapter(source, GLUE, constants),
        args=form.axes,
        cases=cases,
        works=rows,
        start=solutions([o for o in mine if "sources" in o], form, constants, notes),
        needs_args=False,
        notes=[*notes, *form.notes],
    )


class Form:
    """A Definition and its workloads, checked."""

    def __init__(self, definition: Mapping[str, Any], workloads: list[dict[str, Any]]) -> None:
        self.notes: list[str] = []
        self.small = False
        self.consts = {
            a: v.get("value") for a, v in self.mapping(definition, "axes").items() if v.get("type") == "const"
        }
        self.axes = [a for a in definition["axes"] if a not in self.consts]
        for axis in definition["axes"]:
            if identifier(axis) != axis:
                raise IntakeError(f"axes: {axis!r} is not a name.")
        if bad := [a for a, v in self.consts.items() if type(v) is not int or v < 1]:
            raise IntakeError(f"axes: {', '.join(bad)}: a const axis needs a value of at least 1.")
        self.inputs, self.outputs_raw = self.mapping(definition, "inputs"), self.mapping(definition, "outputs")
        self.order = list(self.inputs)
        self.rows = [self.row(w) for w in workloads]
        self.scalars: dict[str, Any] = {}
        self.ranges: dict[str, tuple[float, float, str]] = {}
        self.tensors = [
            (n, self.shape(n, s), self.dtype(n, s)) for n, s in self.inputs.items() if s.get("shape") is not None
        ]
        self.outputs = [(n, self.dtype(n, s)) for n, s in self.outputs_raw.items()]
        for n, s in self.outputs_raw.items():
            if s.get("shape") is None:
                raise IntakeError(f"outputs: {n} is a scalar; only tensors can be judged: leave it out.")
        for n, s in self.inputs.items():
            if s.get("shape") is None:
                self.scalar(n, self.dtype(n, s), workloads)
        self.sources(workloads)

    def mapping(self, definition: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
        value = definition[key]
        if not isinstance(value, dict) or not value or not all(isinstance(v, dict) for v in value.values()):
            raise IntakeError(f"{key}: must be an object of objects, and not empty. {FORM}")
        return value

    def dtype(self, name: str, spec: Mapping[str, Any]) -> str:
        dtype = spec.get("dtype")
        if dtype not in ITEMSIZE_BYTES:
            raise IntakeError(f"{name}: dtype {dtype!r} cannot be judged: one of {', '.join(ITEMSIZE_BYTES)}.")
        return str(dtype)

    def shape(self, name: str, spec: Mapping[str, Any]) -> list[str | int]:
        found: list[str | int] = []
        for entry in spec["shape"]:
            if entry not in self.consts and entry not in self.axes:
                raise IntakeError(f"{name}: shape names {entry!r}, which is no axis.")
            found.append(self.consts.get(entry, entry))
        return found

    def row(self, workload: Mapping[str, Any]) -> dict[str, int]:
        given = workload.get("axes") or {}
        row = {a: given.get(a) for a in self.axes}
        if bad := [a for a, v in row.items() if type(v) is not int or v < 1]:
            raise IntakeError(
                f"workload {workload.get('uuid', '?')}: axis {', '.join(bad)} has no value of at least 1."
            )
        return row  # type: ignore[return-value]

    def scalar(self, name: str, dtype: str, workloads: list[dict[str, Any]]) -> None:
        values = [(w.get("inputs") or {}).get(name, {}).get("value") for w in workloads]
        if not values or any(not isinstance(v, int | float) for v in values):
            raise IntakeError(f"inputs: the scalar {name} needs a value in every workload (type scalar).")
        if len(set(values)) == 1:
            self.scalars[name] = values[0]
            self.notes.append(f"{name} = {values[0]!r} is part of the problem")
        elif "float" not in dtype:
            raise IntakeError(
                f"inputs: the scalar {name} differs by workload, and is no float: make a problem of each value."
            )
        else:
            self.ranges[name] = (min(values), max(values), dtype)
            self.notes.append(
                f"{name} is given as a tensor of one value, drawn from {min(values)!r} to {max(values)!r}"
            )

    def sources(self, workloads: list[dict[str, Any]]) -> None:
        """Random floats can be drawn. What lies in files, or are whole numbers of which nothing is known, cannot."""
        for name, _, dtype in self.tensors:
            kinds = {(w.get("inputs") or {}).get(name, {}).get("type", "random") for w in workloads}
            if "float" not in dtype and dtype != "bool":
                raise IntakeError(
                    f"inputs: {name} is {dtype}, and a Definition does not say which whole numbers make sense. "
                    "Give the problem as a folder of our own, whose inputs.py draws them; see docs/problems.md."
                )
            if "safetensors" in kinds:
                self.notes.append(f"{name} came from a file in some workloads: it is drawn at random instead")


def cases_of(asked: Probe, form: Form) -> tuple[list[Case], list[Work]]:
    """The workloads that a CPU can try, and smaller ones where none is."""
    rows = [dict(t) for t in dict.fromkeys(tuple(r.items()) for r in form.rows)]
    fitting = [r for r in rows if values_of(form, r) <= CPU_VALUES]
    form.small = len(fitting) < 2 and bool(form.axes)
    small = [dict.fromkeys(form.axes, size) for size in SMALL_AXES] if form.small else []
    tried = [*fitting, *[r for r in small if r not in fitting]][:8] or [dict.fromkeys(form.axes, SMALL_AXES[0])]
    cases = [asked.case(row) for row in tried]
    works = [Work(row, hidden=i % 2 == 1) for i, row in enumerate(tried)]
    works += [Work(row, "cuda", hidden=len(rows) > 1 and i % 3 == 1) for i, row in enumerate(rows or tried)]
    return cases, works


def values_of(form: Form, row: Mapping[str, int]) -> int:
    total = 0
    for _, shape, _ in form.tensors:
        size = 1
        for entry in shape:
            size *= row[entry] if isinstance(entry, str) else entry
        total += size
    return total


def checked_outputs(form: Form, cases: list[Case]) -> None:
    wanted = dict(form.outputs)
    for case in cases:
        given = {t.name: t.dtype for t in case.outputs}
        if given != wanted:
            raise IntakeError(f"reference gives {given}; the Definition says {wanted}. Make them agree.")


def solutions(
    found: list[dict[str, Any]], form: Form, constants: Mapping[str, Any], notes: list[str]
) -> dict[str, str]:
    """Start kernels from Solutions in Python or Triton that are one file; the first of each backend."""
    kernels: dict[str, str] = {}
    for solution in found:
        spec, sources = solution.get("spec") or {}, solution.get("sources") or []
        language = str(spec.get("language", "")).lower()
        entry = str(spec.get("entry_point", "")).partition("::")
        if language not in ("triton",) or len(sources) != 1 or not entry[2] or "triton" in kernels:
            notes.append(
                f"Solution {solution.get('name', '?')} was left out: one Triton file with a function can be taken"
            )
            continue
        text = str(sources[0].get("content", ""))
        require(parsed(text, f"Solution {solution.get('name')}"), (entry[2],), f"Solution {solution.get('name')}", "")
        rename = "" if entry[2] == "run" else f"\nrun = {entry[2]}\n"
        code = adapter(on_any_device(text) + rename, GLUE, constants)
        kernels["triton"] = code + run_code(
            [t[0] for t in form.tensors] + list(form.ranges), [o for o, _ in form.outputs], "{}"
        )
    return kernels
