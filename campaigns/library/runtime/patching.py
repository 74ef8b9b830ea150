"""``apply``: put operators in the place of a program's own functions, and take them out again."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from .dispatch import Operator

_MISSING = object()
_in_place: list[Patch] = []
Adapter = Callable[..., "tuple[Any, ...] | None"]


class Patch:
    """One function replaced. Calls that no kernel serves go to the original, with the arguments as they came."""

    def __init__(self, operator: Operator, target: str, adapt: Adapter | None) -> None:
        self.operator, self.target, self.adapt = operator, target, adapt
        self.owner, self.name = _find(target)
        self.original: Callable[..., Any] = getattr(self.owner, self.name)
        self.stored = vars(self.owner).get(self.name, _MISSING)
        self.replacement = self._replacement()
        setattr(self.owner, self.name, self.replacement)

    def _replacement(self) -> Any:
        original, operator, adapt = (
            self.original,
            self.operator,
            self.adapt or _by_signature(self.operator, self.original),
        )

        @functools.wraps(original)
        def dispatched(*args: Any, **kwargs: Any) -> Any:
            inputs = adapt(*args, **kwargs)
            made = operator.run(inputs) if inputs is not None else None
            if made is None:
                return original(*args, **kwargs)
            return made[0] if len(made) == 1 else tuple(made)

        return staticmethod(dispatched) if isinstance(self.stored, staticmethod) else dispatched

    def undo(self) -> None:
        if vars(self.owner).get(self.name) is not self.replacement:
            raise RuntimeError(f"{self.target} was replaced again by somebody else: undo that first")
        if self.stored is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.stored)


def _find(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    if not module or not path:
        raise ValueError(f"{target!r}: write it as package.module:function or package.module:Class.method")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    if not callable(getattr(owner, name, None)):
        raise ValueError(f"{target!r}: there is no such function")
    return owner, name


def _by_signature(operator: Operator, original: Callable[..., Any]) -> Adapter:
    """Inputs by position, or by the operator's own names. Anything else goes to the original."""
    names = [spec["name"] for spec in operator.inputs]

    def adapt(*args: Any, **kwargs: Any) -> tuple[Any, ...] | None:
        if len(args) == len(names) and not kwargs:
            return args
        rest = names[len(args) :]
        if len(args) < len(names) and set(kwargs) == set(rest):
            return (*args, *(kwargs[name] for name in rest))
        return None

    return adapt


class Applied:
    """What one ``apply`` put in place. ``with apply(…):`` takes it out at the end."""

    def __init__(self, patches: list[Patch]) -> None:
        self.patches = patches

    def undo(self) -> None:
        while self.patches:
            self.patches[-1].undo()
            _in_place.remove(self.patches.pop())

    def __enter__(self) -> Applied:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


def apply(
    operators: Mapping[str, Operator], targets: Mapping[str, str], adapt: Mapping[str, Adapter] | None = None
) -> Applied:
    """Replace the functions that ``targets`` names, operator → "package.module:function". All or none.

    ``adapt`` turns the arguments of a function with another signature into the operator's inputs; None from it sends
    the call to the original.
    """
    if unknown := (set(targets) | set(adapt or {})) - set(operators):
        raise ValueError(f"no operator {', '.join(sorted(unknown))}: there are {', '.join(sorted(operators))}")
    applied = Applied([])
    try:
        for name, target in targets.items():
            applied.patches.append(Patch(operators[name], target, (adapt or {}).get(name)))
            _in_place.append(applied.patches[-1])
    except BaseException:
        applied.undo()
        raise
    return applied


def undo() -> None:
    """Take out everything that is in place, the last first."""
    while _in_place:
        _in_place[-1].undo()
        _in_place.pop()
