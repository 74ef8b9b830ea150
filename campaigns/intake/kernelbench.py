"""KernelBench: one file with ``class Model``, ``get_inputs()`` and ``get_init_inputs()``.

Parameters and buffers become inputs, drawn anew with every draw. Whole numbers at the top level that ``get_inputs`` or
``get_init_inputs`` use become axes where they are a dimension of some input; so there can be hidden sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import PurePosixPath

from .draft import Draft, Work, assemble
from .errors import IntakeError
from .glue import adapter
from .probing import Case, Probe, probe
from .source import defined, function, identifier, method, on_any_device, parsed, require, unique, used_names

FORM = "A KernelBench problem is a file with class Model, get_inputs() and get_init_inputs()."
WEIGHT = "w__"
STRUCTURE = 16
"""Smaller constants are kernel sizes, groups, layers: they are not scaled."""
MAX_VALUES = 1 << 21
ENOUGH_S = 0.05
SHRINK = (64, 32, 16, 8, 4, 2, 1)

GLUE = '''

_BUILT, _PLAIN, _VALUES, _NOTES = {}, {}, {}, []


def _construct(args, device):
    global _DEVICE
    _DEVICE = device
    globals().update(args)
    given = get_init_inputs()
    with _torch.device(device):
        if isinstance(given, dict):
            model = Model(**given)
        elif len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
            model = Model(*given[0], **given[1])
        else:
            model = Model(*given)
    return model.to(device)


def _tensors(model):
    """Parameters and buffers, with the names under which they become inputs."""
    found = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {key: value.detach() for key, value in found.items()}


def _same_everywhere(model, args):
    """Tensors that are kept in a plain attribute are part of the problem: they must not be random."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, _torch.Tensor):
                first = _PLAIN.setdefault((str(args), path, name, str(value.device)), value)
                if first.shape != value.shape or not _torch.equal(first, value):
                    raise TypeError(f"Model keeps random values in {name}: make it a Parameter, or register_buffer it")


def _moved(tensor):
    """Weights that are all ones or zeros would need no reading: they are moved a little."""
    if not tensor.is_floating_point() or tensor.numel() == 0 or bool((tensor != tensor.flatten()[0]).any()):
        return tensor
    return tensor * (0.5 + _torch.rand_like(tensor)) + (tensor == 0) * _torch.randn_like(tensor) * 0.1


def _draw(args, device, seed):
    _torch.manual_seed(seed)
    model = _construct(args, device)
    _same_everywhere(model, args)
    with _torch.device(device):
        given = get_inputs()
    found = {}
    for index, value in enumerate(given):
        if isinstance(value, _torch.Tensor):
            found[_NAMES[index]] = value.detach().to(device)
        elif not isinstance(value, (int, float, bool, str, type(None))):
            raise TypeError(f"get_inputs gives a {type(value).__name__}; tensors and plain values can be taken")
        elif (note := f"{_NAMES[index]} = {value!r} is part of the problem") not in _NOTES:
            _NOTES.append(note)
    for key, value in _tensors(model).items():
        if _WEIGHTS is None or key in _WEIGHTS:
            found[_weight(key)] = _moved(value)
    return found


def _weight(key):
    return _WEIGHTS[key] if _WEIGHTS is not None else "w__" + key


def _ready(args, device):
    """A model of this size, and the arguments of forward: None where a tensor goes."""
    key = (str(args), device)
    if key not in _BUILT:
        _torch.manual_seed(0)
        _BUILT[key] = _construct(args, device)
        with _torch.device(device):
            given = get_inputs()
        _VALUES[key] = [None if isinstance(v, _torch.Tensor) else (v,) for v in given]
    globals().update(args)
    return _BUILT[key], _VALUES[key]


def _answer(inputs, args, wide):
    model, values = _ready(args, str(next(iter(inputs.values())).device))
    cast = _wide if wide else (lambda tensor: tensor)
    given = [cast(_own(inputs[_NAMES[i]])) if value is None else value[0] for i, value in enumerate(values)]
    state = {}
    for key, own in _tensors(model).items():
        taken = _WEIGHTS is None or key in _WEIGHTS
        state[key] = cast(_own(inputs[_weight(key)])) if taken else cast(own.clone())
    with _torch.no_grad():
        return _named(_torch.func.functional_call(model, state, tuple(given)))
'''


def convert(path: str, text: str, should_stop: Callable[[], bool]) -> Draft:
    """The draft of a problem. Raises ``IntakeError``; the file's code runs in a sandbox only."""
    tree = parsed(text, path)
    require(tree, ("Model", "get_inputs", "get_init_inputs"), path, FORM)
    source, names = on_any_device(text), forward_names(tree)
    with probe(adapter(source, GLUE, {"_NAMES": names, "_WEIGHTS": None}), should_stop) as asked:
        values = asked.constants(integer_names(tree))
        small = smallest(asked, values)
        axes = movable(asked, small.args)
    tensors = [t.name for t in small.inputs if not t.name.startswith(WEIGHT)]
    keys = [t.name[len(WEIGHT) :] for t in small.inputs if t.name.startswith(WEIGHT) and t.name not in small.idle]
    chosen = unique((identifier(key) for key in keys), [*names, *values])
    outputs = unique((identifier(t.name) for t in small.outputs), [*tensors, *chosen, *values])
    constants = {"_NAMES": names, "_WEIGHTS": dict(zip(keys, chosen, strict=True)), "_OUTPUTS": outputs}
    second = adapter(source, GLUE, {**constants, "_CLONE": bool(small.writes)})
    with probe(second, should_stop) as asked:
        cases, scale = several(asked, {a: values[a] for a in axes})
    name = identifier(PurePosixPath(path).stem).lower()
    return assemble(
        name=name,
        title=title_of(tree) or name.replace("_", " "),
        summary=f"Model.forward({', '.join(tensors)}) of a KernelBench problem, parameters given as inputs",
        format="KernelBench",
        adapter=second,
        args=axes,
        cases=cases,
        works=workloads(axes, values, cases, scale),
        notes=notes_of(values, axes, small),
    )


def title_of(tree: ast.Module) -> str:
    """The first line of what the file, or else its Model, says of itself."""
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    said = ast.get_docstring(tree) or (ast.get_docstring(model) if model else "") or ""
    return next(iter(said.splitlines()), "").strip().rstrip(".:")[:100]


def notes_of(values: dict[str, int], axes: list[str], small: Case) -> list[str]:
    notes = [f"{name} = {values[name]} is part of the problem, and no axis" for name in values if name not in axes]
    if not axes:
        notes.append("no size is a whole number at the top level of the file: there are no hidden sizes")
    if small.idle:
        left_out = ", ".join(name[len(WEIGHT) :] for name in small.idle)
        notes.append(f"left out of the inputs, since they change nothing: {left_out}")
    return notes


def forward_names(tree: ast.Module) -> list[str]:
    forward = method(tree, "Model", "forward")
    if forward is None:
        raise IntakeError(f"class Model has no forward method. {FORM}")
    found = [a.arg for a in forward.args.args[1:]] or []
    if forward.args.vararg or not found:
        found += [f"in{i}" for i in range(len(found), 32)]
    return unique(identifier(name) for name in found)


def integer_names(tree: ast.Module) -> list[str]:
    """Names at the top level that ``get_inputs`` or ``get_init_inputs`` use, and that are set there once."""
    used = used_names([function(tree, "get_inputs"), function(tree, "get_init_inputs")])
    order = [
        t.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for t in node.targets
        if isinstance(t, ast.Name) and t.id in used
    ]
    return [n for n in dict.fromkeys(order) if order.count(n) == 1 and n in defined(tree) and identifier(n) == n]


def scaled(values: dict[str, int], by: int) -> dict[str, int]:
    return {name: v if v <= STRUCTURE else max(8, v // by) for name, v in values.items()}


def smallest(asked: Probe, values: dict[str, int]) -> Case:
    """The smallest size at which it runs at all, with what does not matter there."""
    error: IntakeError | None = None
    for by in SHRINK:
        try:
            case = asked.case(scaled(values, by))
            return asked.case(scaled(values, by), [t.name for t in case.inputs if t.name.startswith("w__")])
        except IntakeError as failure:
            error = failure
    raise error or IntakeError("it does not run")


def movable(asked: Probe, base: dict[str, int]) -> list[str]:
    """Constants that are a dimension of some input, and can be another number by themselves."""
    start = asked.case(base)
    return [name for name in base if any(follows(start, moved, name) for moved in variants(asked, base, name))]


def variants(asked: Probe, base: dict[str, int], name: str) -> list[Case]:
    """One more, else twice as much: the first that runs."""
    for value in (base[name] + 1, base[name] * 2):
        if case := attempt(asked, {**base, name: value}):
            return [case]
    return []


def attempt(asked: Probe, args: dict[str, int]) -> Case | None:
    try:
        return asked.case(args)
    except IntakeError:
        return None


def follows(start: Case, moved: Case, name: str) -> bool:
    """Whether some dimension of some input is this constant in both."""
    pairs = zip(start.inputs, moved.inputs, strict=False)
    return any(
        (a, b) == (start.args[name], moved.args[name])
        for one, two in pairs
        for a, b in zip(one.shape, two.shape, strict=False)
    )


def several(asked: Probe, values: dict[str, int]) -> tuple[list[Case], int]:
    """Cases of growing size, as far as a CPU is quick, then each axis moved by itself; and the scale of the largest."""
    cases: list[Case] = []
    scale = 1
    for by in SHRINK:
        if cases and (cases[-1].seconds > ENOUGH_S or cases[-1].values * 2 > MAX_VALUES):
            break
        args = scaled(values, by)
        if args in [c.args for c in cases]:
            scale = by
        elif case := attempt(asked, args):
            cases.append(case)
            scale = by
    if not cases:
        cases.append(asked.case(values))
    base = cases[-1].args
    moved = [case for name in values for case in variants(asked, base, name)]
    return [*cases[::-1], *moved], scale


def workloads(axes: list[str], values: dict[str, int], cases: list[Case], scale: int) -> list[Work]:
    """On a CPU what ran there, on a GPU the sizes that the file gives. Moved sizes are hidden."""
    base = cases[0].args
    grown = [c.args for c in cases if all(c.args[a] <= base[a] for a in axes)]
    moved = [c.args for c in cases if c.args not in grown]
    found = [Work(args) for args in grown[:2]] + [Work(args, hidden=True) for args in [*grown[2:3], *moved[:4]]]
    real = {a: values[a] for a in axes}
    found.append(Work(real, "cuda"))
    hidden = [{**real, a: real[a] + 1} for a in axes if any(args[a] == base[a] + 1 for args in moved)]
    return found + [Work(args, "cuda", hidden=True) for args in hidden[:3]]
