"""Arithmetic over axis names, as problem folders write it: ``tokens // 4 + 1``. Nothing else can be said in it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}
_MAX_LENGTH = 500


class ExpressionError(ValueError):
    """The text is no arithmetic over the given names."""


def evaluate(text: str, names: Mapping[str, float]) -> float:
    """The value of ``text``. Allowed: whole and decimal numbers, the names given, ``+ - * / // %``, min, max, ceil, floor."""
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(text)} characters: at most {_MAX_LENGTH} are read")
    try:
        tree = ast.parse(text, mode="eval")
        return _value(tree.body, names)
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(f"{text!r} is not an arithmetic expression") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise ExpressionError(f"{text!r}: {error}") from None


def _value(node: ast.expr, names: Mapping[str, float]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in names:
                raise ExpressionError(f"unknown name {name!r}; known are {', '.join(sorted(names)) or 'none'}")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS and args:
            return _CALLS[name](*(_value(a, names) for a in args))
    raise ExpressionError(
        f"{ast.unparse(node)!r} is not allowed: only + - * / // %, min, max, ceil, floor and axis names"
    )
