"""GPU MODE reference-kernels: ``reference.py`` (ref_kernel, generate_input), ``task.yml`` (tests, benchmarks), ``submission.py``.

The arguments of ``generate_input`` become axes; benchmarks are timed, every other test is hidden. Tensors that a kernel
is given only to write its result into are outputs here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from campaigns.harness.candidate import guess_backend

from .draft import Draft, Work, assemble
from .errors import IntakeError
from .glue import adapter, run_code
from .probing import Case, Probe, probe
from .source import function, identifier, on_any_device, parsed, require, standing_in, unique

FORM = "A GPU MODE problem has reference.py with ref_kernel(data) and generate_input(…), and task.yml with its sizes."
MAX_CASES = 8
CPU_VALUES = 1 << 22
SLOW_S = 2.0

PRELUDE = '''

def _stand_in(*args, **kwargs):
    """In place of the helpers of utils.py: they compare, which is done elsewhere."""
    return args[0] if args else None
'''
HELPERS = {"task", "utils"}
"""Modules beside reference.py, of which only type names and comparison helpers are used."""

GLUE = '''

_KEPT = {}


def _data(args, device, seed):
    """What generate_input gives, with everything random set to follow from the seed."""
    global _DEVICE
    _DEVICE = device
    _torch.manual_seed(seed)
    given = {name: _CHOICES[name][value - 1] if name in _CHOICES else value for name, value in args.items()}
    given.update(_FIXED)
    if _SEEDED:
        given["seed"] = seed
    with _torch.device(device):
        return generate_input(**given)


def _leaves(data, path=()):
    if isinstance(data, (tuple, list)):
        for index, value in enumerate(data):
            yield from _leaves(value, (*path, index))
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, data


def _label(path):
    if len(path) == 1 and isinstance(path[0], int) and path[0] < len(_NAMES):
        return _NAMES[path[0]]
    head = _NAMES[path[0]] if path and isinstance(path[0], int) and path[0] < len(_NAMES) else None
    rest = path[1:] if head else path
    words = "_".join([head or "in", *[str(part) for part in rest]]) if path else "data"
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in words)


def _draw(args, device, seed):
    found = {}
    for path, value in _leaves(_data(args, device, seed)):
        if isinstance(value, _torch.Tensor):
            if _label(path) not in _PLACES:
                found[_label(path)] = value
        elif not isinstance(value, (int, float, bool, str, type(None), _torch.dtype)):
            raise TypeError(f"generate_input gives a {type(value).__name__}; tensors and plain values can be taken")
        elif _KEPT.setdefault((str(args), path), value) != value:
            raise TypeError(f"generate_input gives another {_label(path)} in every draw, which is no tensor: {value!r}")
    return found


def _filled(data, inputs, path=()):
    if isinstance(data, (tuple, list)):
        made = [_filled(value, inputs, (*path, index)) for index, value in enumerate(data)]
        return type(data)(made) if type(data) in (tuple, list) else type(data)(*made)
    if isinstance(data, dict):
        return {key: _filled(value, inputs, (*path, key)) for key, value in data.items()}
    if not isinstance(data, _torch.Tensor):
        return data
    name = _label(path)
    return inputs[name] if name in inputs else _torch.zeros_like(data)


def _template(args, device):
    key = ("template", str(args), device)
    if key not in _KEPT:
        _KEPT[key] = _data(args, device, 0)
    return _KEPT[key]


def _asked(kernel, inputs, args, wide):
    device = str(next(iter(inputs.values())).device)
    given = {name: _own(tensor) for name, tensor in inputs.items()}
    if wide:
        given = {name: _wide(tensor) for name, tensor in given.items()}
    data = _filled(_template(args, device), given) if _TEMPLATE else tuple(given.values())
    if wide and _TEMPLATE:
        data = _filled_wide(data)
    with _torch.no_grad():
        found = kernel(data)
    if found is None:
        found = {name: value for path, value in _leaves(data) if (name := _label(path)) in (_PLACES or _WRITTEN)}
        if not found:
            raise TypeError("ref_kernel returns nothing, and writes to none of its tensors")
    return _named(found)


def _filled_wide(data):
    if isinstance(data, (tuple, list)):
        return type(data)(_filled_wide(value) for value in data)
    if isinstance(data, dict):
        return {key: _filled_wide(value) for key, value in data.items()}
    return _wide(data) if isinstance(data, _torch.Tensor) else data


def _answer(inputs, args, wide):
    return _asked(ref_kernel, inputs, args, wide)
'''

SUBMISSION = """

def _answer(inputs, args, wide):
    return _asked(custom_kernel, inputs, args, wide)
"""


def convert(files: Mapping[str, str], name: str, should_stop: Callable[[], bool]) -> Draft:
    """The draft of a problem. Raises ``IntakeError``; foreign code runs in a sandbox only."""
    path = next(p for p in files if PurePosixPath(p).name == "reference.py")
    text = files[path]
    tree = parsed(text, path)
    require(tree, ("ref_kernel", "generate_input"), path, FORM)
    task = task_of(files)
    rows, choices, fixed = arguments(task)
    source = on_any_device(standing_in(text, HELPERS))
    names = data_names(tree)
    maker = function(tree, "generate_input")
    seeded = maker is not None and any(a.arg == "seed" for a in maker.args.args + maker.args.kwonlyargs)
    constants: dict[str, Any] = {
        "_SEEDED": seeded,
        "_NAMES": names,
        "_CHOICES": choices,
        "_FIXED": fixed,
        "_PLACES": [],
        "_TEMPLATE": True,
    }
    first = adapter(source, GLUE, {**constants, "_WRITTEN": names}, PRELUDE)
    with probe(first, should_stop) as asked:
        start = first_that_runs(asked, [args for args, _ in rows])
        writes = asked.case(start.args, start.writes)
    places = [n for n in writes.writes if n in writes.idle]
    constants |= {"_PLACES": places, "_CLONE": bool(set(writes.writes) - set(places)), "_WRITTEN": writes.writes}
    inputs = [t.name for t in writes.inputs if t.name not in places]
    args_names = list(rows[0][0])
    constants["_OUTPUTS"] = unique((identifier(t.name) for t in writes.outputs), [*inputs, *args_names])
    second = adapter(source, GLUE, constants, PRELUDE)
    with probe(second, should_stop) as asked:
        cases = cases_of(asked, [args for args, _ in rows])
    return assemble(
        name=identifier(name).lower(),
        title=name.replace("_", " ").strip()[:100],
        summary=first_line(task.get("description")) or "ref_kernel of a GPU MODE problem",
        format="GPU MODE reference-kernels",
        adapter=second,
        args=args_names,
        cases=cases,
        works=workloads(rows, cases),
        start=submission(files, constants, inputs, cases),
        notes=[f"written by the kernel, and outputs here: {', '.join(places)}"] if places else [],
    )


def task_of(files: Mapping[str, str]) -> dict[str, Any]:
    path = next((p for p in files if PurePosixPath(p).name in ("task.yml", "task.yaml")), None)
    if path is None:
        raise IntakeError(f"task.yml is missing: it names the sizes. {FORM}")
    if len(files[path]) > 1 << 18 or ("&" in files[path] and "*" in files[path] and files[path].count("*") > 2000):
        raise IntakeError(f"{path}: too large.")
    try:
        found = yaml.load(files[path], Loader=NoAliases)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise IntakeError(f"{path}: {str(error)[:300]}") from None
    if not isinstance(found, dict):
        raise IntakeError(f"{path}: must be a mapping with tests and benchmarks.")
    return found


class NoAliases(yaml.SafeLoader):
    """Aliases of aliases can make a small file a huge value; a task needs none."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise IntakeError("task.yml: YAML aliases are not taken: write the values out.")
        return super().compose_node(parent, index)


def arguments(task: Mapping[str, Any]) -> tuple[list[tuple[dict[str, int], str]], dict[str, list[Any]], dict[str, Any]]:
    """Rows of arguments with where they are from. What is no whole number from 1 on becomes a choice; what never varies
    and is no number is fixed."""
    raw = [(row, key) for key in ("benchmarks", "tests") for row in task.get(key) or [] if isinstance(row, dict)]
    if not raw:
        raise IntakeError("task.yml: no tests and no benchmarks with arguments of generate_input.")
    plain = [({str(k): v for k, v in row.items() if k != "seed"}, key) for row, key in raw]
    names = list(dict.fromkeys(n for row, _ in plain for n in row))
    if any(set(row) != set(names) for row, _ in plain):
        raise IntakeError(f"task.yml: each test and benchmark needs all of {', '.join(names)}.")
    if bad := [n for n in names if identifier(n) != n]:
        raise IntakeError(f"task.yml: {', '.join(bad)}: not a name.")
    choices: dict[str, list[Any]] = {}
    fixed: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row, _ in plain]
        if all(type(v) is int and 1 <= v < 1 << 40 for v in values):
            continue
        if any(not isinstance(v, int | float | str | bool) and v is not None for v in values):
            raise IntakeError(f"task.yml: {name} = {values[0]!r}: numbers and words can be taken.")
        different = list(dict.fromkeys(values))
        if len(different) == 1:
            fixed[name] = different[0]
        else:
            choices[name] = different
    rows: list[tuple[dict[str, int], str]] = []
    for row, key in plain:
        args = {n: choices[n].index(v) + 1 if n in choices else v for n, v in row.items() if n not in fixed}
        if args not in [a for a, _ in rows]:
            rows.append((args, key))
    return rows, choices, fixed


def data_names(tree: ast.Module) -> list[str]:
    """From ``a, b = data`` in ref_kernel."""
    kernel = function(tree, "ref_kernel")
    assert kernel is not None
    first = kernel.args.args[0].arg if kernel.args.args else ""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == first:
            target = node.targets[0]
            if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
                names = [identifier(e.id) for e in target.elts if isinstance(e, ast.Name)]
                return unique("unused" if n == "_" else n for n in names)
    return []


def first_that_runs(asked: Probe, rows: list[dict[str, int]]) -> Case:
    error: IntakeError | None = None
    for args in sorted(rows, key=lambda row: sum(row.values()))[:4]:
        try:
            return asked.case(args)
        except IntakeError as failure:
            error = failure
    raise error or IntakeError("it does not run")


def cases_of(asked: Probe, rows: list[dict[str, int]]) -> list[Case]:
    """What ran, from the smallest on, until it takes too long on a CPU."""
    cases: list[Case] = []
    error: IntakeError | None = None
    for args in sorted(rows, key=lambda row: sum(row.values())):
        if len(cases) >= MAX_CASES or (cases and cases[-1].seconds > SLOW_S):
            break
        try:
            cases.append(asked.case(args))
        except IntakeError as failure:
            error = failure
    if not cases:
        raise error or IntakeError("it does not run")
    return cases


def workloads(rows: list[tuple[dict[str, int], str]], cases: list[Case]) -> list[Work]:
    """Benchmarks are timed; tests too on a CPU, where they are what is small enough. Every other test is hidden."""
    tests = [args for args, key in rows if key == "tests"]
    hidden = [args for i, args in enumerate(tests) if i % 2]
    small = [c.args for c in cases if c.values <= CPU_VALUES]
    found = [Work(args, hidden=args in hidden) for args in small]
    for args, key in rows:
        found.append(Work(args, "cuda", hidden=args in hidden, timed=key == "benchmarks"))
    if found and all(w.hidden for w in found if w.device == "cpu"):
        found = [Work(w.args, w.device, False, w.timed) if w.device == "cpu" else w for w in found]
    return found


def submission(
    files: Mapping[str, str], constants: Mapping[str, Any], inputs: list[str], cases: list[Case]
) -> dict[str, str]:
    """A start kernel from submission.py, where it needs nothing but the tensors."""
    path = next((p for p in files if PurePosixPath(p).name == "submission.py"), None)
    if path is None:
        return {}
    tree = parsed(files[path], path)
    require(tree, ("custom_kernel",), path, "A submission defines custom_kernel(data).")
    backend = guess_backend({"kernel.py": files[path]})
    if backend not in ("triton", "cutedsl") or constants["_PLACES"]:
        return {}
    glue = GLUE + SUBMISSION
    text = adapter(on_any_device(standing_in(files[path], HELPERS)), glue, {**constants, "_TEMPLATE": False}, PRELUDE)
    return {backend: text + run_code(inputs, list(constants["_OUTPUTS"]), "{}")}


def first_line(text: Any) -> str:
    lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
    return lines[0][:200] if lines else ""
