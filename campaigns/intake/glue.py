"""The code that goes around a foreign source, so that it can be asked like any problem of ours.

What stands here as text runs in sandboxes only. Each format's part defines ``_draw(args, device, seed)``, which gives the
input tensors by name, and ``_answer(inputs, args, wide)``, which gives the outputs, in float64 where ``wide``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .source import future_first

HEAD = """\
import torch as _torch

_DEVICE = "cuda" if _torch.cuda.is_available() else "cpu"
"""

COMMON = '''
# --- how this source is asked: written by the importer -----------------------------------------------------------------


def _own(tensor):
    """Some sources write into what they are given: they get copies."""
    return tensor.clone() if _CLONE else tensor


def _wide(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def _named(found):
    """The outputs by name."""
    if isinstance(found, _torch.Tensor):
        return {_OUTPUTS[0] if _OUTPUTS else "out": found}
    if isinstance(found, dict):
        items = [(str(key), value) for key, value in found.items()]
    elif isinstance(found, (tuple, list)):
        items = [(f"out{i}", value) for i, value in enumerate(found)]
    else:
        raise TypeError(f"it gives a {type(found).__name__}; tensors, or a tuple, list or dict of them, can be judged")
    for name, value in items:
        if not isinstance(value, _torch.Tensor):
            raise TypeError(f"its output {name} is a {type(value).__name__}; only tensors can be judged: leave it out")
    names = _OUTPUTS if len(_OUTPUTS) == len(items) else [name for name, _ in items]
    if isinstance(found, dict) and set(_OUTPUTS) == set(found):
        return {name: found[name] for name in _OUTPUTS}
    return {name: value for name, (_, value) in zip(names, items)}
'''


def adapter(source: str, glue: str, constants: Mapping[str, Any], prelude: str = "") -> str:
    """One file: the source as it was, then how it is asked. ``constants`` are written out as literals."""
    future, body = future_first(source)
    baked = "".join(f"{name} = {value!r}\n" for name, value in {"_CLONE": True, "_OUTPUTS": [], **constants}.items())
    return f"{future}{HEAD}{prelude}\n{body}\n{COMMON}\n\n{baked}{glue}"


INPUTS = '''

def make_inputs(axes, generator, device, dtype):
    """One fresh draw: everything random follows from one number of the generator."""
    seed = int(_torch.randint(2**31 - 1, (1,), generator=generator, device=generator.device))
    return _draw({name: axes[name] for name in _ARGS}, str(device), seed)
'''

REFERENCE = '''

def reference(inputs, axes):
    """In float64 where the source allows it."""
    return _answer(inputs, {name: axes[name] for name in _ARGS}, _IN_FLOAT64)
'''


def run_code(inputs: list[str], outputs: list[str], args: str) -> str:
    """``run(inputs…, outputs…)``; ``args`` is the expression that finds the arguments from the tensors."""
    given = ", ".join(f'"{name}": {name}' for name in inputs)
    writes = "\n".join(f'    {name}.copy_(_found["{name}"])' for name in outputs)
    return f"\n\ndef run({', '.join(inputs + outputs)}):\n    _found = _answer({{{given}}}, {args}, False)\n{writes}\n"
