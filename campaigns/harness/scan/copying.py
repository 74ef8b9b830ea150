"""Does a kernel compute, or only carry what somebody else has computed to where it belongs?"""

from __future__ import annotations

import ast

CASTS = {"to", "cast", "view", "reshape", "trans", "broadcast_to", "expand_dims"}


def only_copies(kernel: ast.FunctionDef) -> bool:
    """Whether all that a Triton kernel stores is what it loaded, moved or cast, or a constant. Not where it is in doubt."""
    made: dict[str, list[ast.expr]] = {}
    stored: list[ast.expr] = []
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            made.setdefault(node.target.id, []).extend([node.value, node])  # type: ignore[list-item]
        elif isinstance(node, ast.Call):
            name = _last(node)
            if name == "store" and len(node.args) > 1:
                stored.append(node.args[1])
            elif name.startswith("atomic") or (isinstance(node.func, ast.Name) and name not in ("range", "min", "max")):
                return False  # it adds up, or leaves the work to a function of its own
    return bool(stored) and all(_is_copy(value, made, frozenset()) for value in stored)


def _is_copy(value: ast.expr, made: dict[str, list[ast.expr]], seen: frozenset[str]) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name):
        sources = made.get(value.id, [])
        again = seen | {value.id}
        return value.id not in seen and bool(sources) and all(_is_copy(s, made, again) for s in sources)
    if isinstance(value, ast.BinOp):
        return _is_neutral(value) and _is_copy(value.left, made, seen)
    if isinstance(value, ast.Call):
        name = _last(value)
        if name in CASTS:
            inner = value.args[0] if name == "cast" and value.args else getattr(value.func, "value", None)
            return isinstance(inner, ast.expr) and _is_copy(inner, made, seen)
        return name == "load"
    return False


def _is_neutral(node: ast.BinOp) -> bool:
    """``v + 0`` and ``v * 1``."""
    if not isinstance(node.right, ast.Constant):
        return False
    nothing = 1 if isinstance(node.op, ast.Mult | ast.Div) else 0
    return isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div) and node.right.value == nothing


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
