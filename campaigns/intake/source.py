"""Foreign Python as text: parsed, never run here. What it defines, and the places that must follow a device."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable

from .errors import IntakeError

RESERVED = {"make_inputs", "refresh", "edge_inputs", "reference"}


def parsed(text: str, name: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise IntakeError(f"{name}, line {error.lineno}: {error.msg}. It must be Python.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise IntakeError(f"{name}: cannot be read as Python: {error}") from None


def defined(tree: ast.Module) -> set[str]:
    """Functions, classes and plain names at the top level."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {t.id for t in targets if isinstance(t, ast.Name)}
    return found


def require(tree: ast.Module, names: Iterable[str], where: str, form: str) -> None:
    if missing := [n for n in names if n not in defined(tree)]:
        raise IntakeError(f"{where}: defines no {', '.join(missing)}. {form}")
    if taken := RESERVED & defined(tree):
        raise IntakeError(
            f"{where}: defines {', '.join(sorted(taken))}, which our own folder needs: give it another name."
        )


def function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    return next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def method(tree: ast.Module, cls: str, name: str) -> ast.FunctionDef | None:
    owner = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls), None)
    return next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name), None) if owner else None


def used_names(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {n.id for node in nodes if node for n in ast.walk(node) if isinstance(n, ast.Name)}


def identifier(text: str) -> str:
    """A name for a tensor or a problem: letters, digits, underscores."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
    found = f"x{found}" if found[0].isdigit() else found
    return f"{found}_" if keyword.iskeyword(found) else found


def unique(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The same names, each once: a number is added where one is taken."""
    seen, found = set(taken), []
    for name in names:
        chosen, count = name, 2
        while chosen in seen:
            chosen, count = f"{name}_{count}", count + 1
        seen.add(chosen)
        found.append(chosen)
    return found


def on_any_device(text: str) -> str:
    """``"cuda"`` becomes ``_DEVICE`` and ``.cuda()`` becomes ``.to(_DEVICE)``; all else stays as it is written."""
    lines = text.split("\n")
    edits: list[tuple[int, int, int, int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"cuda(:0)?", node.value):
            edits.append((*span(node), "_DEVICE"))
        elif is_cuda_call(node):
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            owner = node.func.value
            end = (owner.end_lineno or 0, owner.end_col_offset or 0)
            edits.append((end[0], end[1], node.end_lineno or 0, node.end_col_offset or 0, ".to(_DEVICE)"))
    for line, column, end_line, end_column, new in sorted(edits, reverse=True):
        head = lines[line - 1].encode()[:column].decode()
        tail = lines[end_line - 1].encode()[end_column:].decode()
        lines[line - 1 : end_line] = [head + new + tail]
    return "\n".join(lines)


def standing_in(text: str, modules: set[str]) -> str:
    """Imports from modules that are not here become plain names: types (``…_t``) are ``object``, all else ``_stand_in``."""
    lines = text.split("\n")
    for node in sorted(ast.walk(ast.parse(text)), key=lambda n: -getattr(n, "lineno", 0)):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            names = [a.asname or a.name for a in node.names if a.name != "*"]
        elif isinstance(node, ast.Import) and any(a.name in modules for a in node.names):
            names = [a.asname or a.name for a in node.names if a.name in modules]
        else:
            continue
        parts = [f"{name} = {'object' if name.endswith('_t') else '_stand_in'}" for name in names] or ["pass"]
        last = node.end_lineno or node.lineno
        lines[node.lineno - 1 : last] = [" " * node.col_offset + "; ".join(parts)] + [""] * (last - node.lineno)
    return "\n".join(lines)


def is_cuda_call(node: ast.AST) -> bool:
    """``x.cuda()``, whatever it is given, but not a function of that name in a module."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"


def span(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def future_first(text: str) -> tuple[str, str]:
    """The line of ``from __future__`` imports, which must come first, and the rest."""
    tree = ast.parse(text)
    found = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    lines = text.split("\n")
    for node in found:
        for number in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[number] = ""
    names = sorted({a.name for node in found for a in node.names})
    return (f"from __future__ import {', '.join(names)}\n\n" if names else ""), "\n".join(lines).strip("\n")
