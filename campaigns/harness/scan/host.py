"""The host side of a Python candidate that holds kernels: its functions, what they launch, and what flows where.

Names stand for values, whatever the order of the lines: more is taken to flow than really does, so that what is said
*not* to happen does not happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

FREE = {
    *("empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"),
    *("new_empty", "new_zeros", "new_ones", "new_full", "arange", "tensor", "as_tensor", "scalar_tensor", "linspace"),
    *("view", "reshape", "contiguous", "transpose", "permute", "t", "flatten", "squeeze", "unsqueeze", "expand"),
    *("expand_as", "view_as", "narrow", "select", "as_strided", "detach", "clone", "split", "chunk", "unbind", "movedim"),
    *("swapaxes", "broadcast_to", "to", "type", "float", "half", "bfloat16", "double", "int", "long", "cuda", "copy_"),
    *("size", "stride", "numel", "dim", "element_size", "data_ptr", "is_contiguous", "get_device", "storage_offset"),
    *("zero_", "fill_", "device", "cdiv", "next_power_of_2", "get_device_properties", "current_stream", "get"),
    *("len", "min", "max", "range", "tuple", "list", "dict", "zip", "enumerate", "isinstance", "print", "bool", "str"),
    *("append", "items", "keys", "values", "setdefault", "ceil", "floor", "log2", "sqrt", "from_dlpack"),
}  # fmt: skip
"""Calls that compute nothing on a tensor's values: memory, shapes, views, casts, plain numbers."""


@dataclass
class Function:
    """A function that the host runs. ``names`` is every name that its body reads, ``parts`` every attribute."""

    node: ast.FunctionDef
    path: str
    names: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)


class Host:
    """All Python files of one candidate together. ``outputs``: how many of ``run``'s last parameters it writes."""

    def __init__(self, trees: dict[str, ast.Module], outputs: int) -> None:
        self.trees = trees
        self.jitted = {name: (path, node) for path, tree in trees.items() for name, node in jit_defs(tree)}
        self.plain = {name for tree in trees.values() for name in _plain(tree)}
        self.kernels = set(self.jitted) | {name for tree in trees.values() for name in made_kernels(tree)}
        self.functions: dict[str, list[Function]] = {}
        for path, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and not is_jit(node):
                    self.functions.setdefault(node.name, []).append(_function(node, path))
        self.reached = self._reachable()
        self.carriers = self._carriers()
        run = next(iter(self.functions.get("run", [])), None)
        parameters = [a.arg for a in run.node.args.args] if run else []
        self.run = run
        self.inputs = set(parameters[:-outputs] if outputs < len(parameters) else [])
        self.outs = self._aliases(set(parameters) - self.inputs)
        self.tensors = self._aliases(set(parameters))

    def _reachable(self) -> list[Function]:
        """What ``run`` may call; everything where there is no plain ``run``."""
        if "run" not in self.functions:
            return [f for some in self.functions.values() for f in some]
        classes = {n.name: n for tree in self.trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        found: list[Function] = []
        todo, seen = ["run"], set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in classes:
                todo += [n.name for n in ast.walk(classes[name]) if isinstance(n, ast.FunctionDef)]
            for tree in self.trees.values():  # what a module-level name is made of
                todo += [n for a in tree.body if name in _bound(a) for n in _read(a)]
            for function in self.functions.get(name, []):
                found.append(function)
                todo += function.names | function.parts
        return found

    def _carriers(self) -> set[str]:
        """Names that may stand for a kernel: its own, and whatever is made from one."""
        found = set(self.kernels)
        while True:
            more = {t for a in self._assignments() if found & _read(a) for t in _bound(a)} - found
            if not more:
                return found
            found |= more

    def _assignments(self) -> Iterator[ast.AST]:
        for tree in self.trees.values():
            for node in ast.walk(tree):
                if isinstance(
                    node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.withitem
                ):
                    yield node

    def nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """Every node of what ``run`` may call, once."""
        seen: set[int] = set()
        for function in self.reached:
            for node in ast.walk(function.node):
                if id(node) not in seen:
                    seen.add(id(node))
                    yield function.path, node

    def is_launch(self, node: ast.AST) -> bool:
        """``kernel[grid](…)``, ``kernel(…).launch(…)``, ``compiled(…)``: a call of something made of a kernel."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Subscript):
            return True
        return bool(self.carriers & _read(node.func)) and getattr(node.func, "attr", "") != "compile"

    def launches(self) -> list[tuple[str, ast.Call]]:
        return [(path, node) for path, node in self.nodes() if isinstance(node, ast.Call) and self.is_launch(node)]

    def launched_names(self) -> set[str]:
        """Every name that a launch is given."""
        found: set[str] = set()
        for _, call in self.launches():
            for argument in [*call.args, *(k.value for k in call.keywords)]:
                found |= _held(argument) - self.plain
        return (self._aliases(found) | self._backward(found - self.inputs)) - self.plain

    def _aliases(self, names: set[str]) -> set[str]:
        """Names that may hold the same memory: views, containers, parameters that they are handed to."""
        found = set(names)
        while True:
            more: set[str] = set()
            for node in self._assignments():
                value = (
                    getattr(node, "value", None) or getattr(node, "iter", None) or getattr(node, "context_expr", None)
                )
                if value is not None and found & _held(value):
                    more |= _bound(node)
            for tree in self.trees.values():
                for node in ast.walk(tree):
                    if isinstance(node, ast.Call):
                        more |= self._handed(node, found)
            if more <= found:
                return found
            found |= more

    def _handed(self, call: ast.Call, names: set[str]) -> set[str]:
        """The parameters of local functions into which one of these names goes."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        found: set[str] = set()
        for function in self.functions.get(name, []):
            parameters = [a.arg for a in function.node.args.args]
            rest = {a.arg for a in (function.node.args.vararg, function.node.args.kwarg) if a is not None}
            starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
            if starred and any(names & _read(a) for a in [*call.args, *(k.value for k in call.keywords)]):
                found |= set(parameters) | rest
            shift = 1 if parameters[:1] == ["self"] else 0
            for index, argument in enumerate(call.args):
                if names & _read(argument):
                    found |= {parameters[index + shift]} if index + shift < len(parameters) else rest
            named = {k.arg for k in call.keywords if k.arg and names & _read(k.value)}
            found |= named & set(parameters) | (rest if named - set(parameters) else set())
        return found

    def _backward(self, names: set[str]) -> set[str]:
        """Names made out of these by assignment: a value that a kernel wrote, summed or viewed."""
        found = set(names) - self.plain
        while True:
            more = {t for node in self._assignments() if found & _read(node) for t in _bound(node)} - found - self.plain
            if not more:
                return found
            found |= more

    def sources(self, expression: ast.expr) -> set[str]:
        """The names that an expression's value may come from."""
        found = _read(expression) - self.plain
        while True:
            more: set[str] = set()
            for node in self._assignments():
                if found & _bound(node):
                    more |= _read(node) - self.plain
            if more <= found:
                return found
            found |= more

    def computes(self, expression: ast.AST, depth: int = 3) -> bool:
        """Whether torch does arithmetic on a tensor in it: anything but views, memory and plain numbers."""
        for node in ast.walk(expression):
            if isinstance(node, ast.BinOp) and self.tensors & _held(node):
                return True
            if not isinstance(node, ast.Call) or self.is_launch(node):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            local = [] if isinstance(node.func, ast.Attribute) else self.functions.get(name, [])
            if local:
                if depth and any(self.computes(f.node, depth - 1) and not self.launches_in(f.node) for f in local):
                    return True
            elif name not in FREE and self.tensors & _held(node):
                return True
        return False

    def launches_in(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether a kernel is launched in it, also by a function of the candidate's that it calls."""
        for each in ast.walk(node):
            if self.is_launch(each):
                return True
            if isinstance(each, ast.Call) and depth:
                name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
                if any(self.launches_in(f.node, depth - 1) for f in self.functions.get(name, [])):
                    return True
        return False


def _function(node: ast.FunctionDef, path: str) -> Function:
    found = Function(node, path)
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.names.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.parts.add(each.attr)
    return found


def _read(node: ast.AST) -> set[str]:
    """Names that are read in it."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _held(node: ast.AST) -> set[str]:
    """Names whose own memory the value of it may be: none behind ``.shape`` or ``len(…)``."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return _held(node.value) if node.attr in ("T", "mT", "data", "real") else set()
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        own = _held(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        if name in ("size", "stride", "numel", "dim", "len", "range", "element_size", "cdiv", "next_power_of_2", "min"):
            return set()
        return own.union(*(_held(a) for a in node.args), *(_held(k.value) for k in node.keywords))
    return set().union(*(_held(child) for child in ast.iter_child_nodes(node)))


def _plain(tree: ast.Module) -> set[str]:
    """Names that hold no tensor: modules, functions, and numbers at the top of a file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            found |= _bound(node)
    return found


def _bound(node: ast.AST) -> set[str]:
    """Names that it binds, or into whose elements it writes."""
    targets: list[ast.AST] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    found: set[str] = set()
    for target in targets:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and (isinstance(each.ctx, ast.Store) or isinstance(target, ast.Subscript)):
                found.add(each.id)
    return found


def is_jit(node: ast.FunctionDef) -> bool:
    return any(map(_makes_kernel, node.decorator_list))


def _makes_kernel(node: ast.expr) -> bool:
    call = node.func if isinstance(node, ast.Call) else node
    name = call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""
    root = call.value.id if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) else ""
    return (name == "jit" and root not in ("numba", "torch")) or (name == "kernel" and root in ("cute", ""))


def jit_defs(tree: ast.AST) -> list[tuple[str, ast.FunctionDef]]:
    """Functions with a decorator that makes a kernel of them."""
    return [(n.name, n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and is_jit(n)]


def made_kernels(tree: ast.AST) -> set[str]:
    """``name = triton.jit(function)``."""
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _makes_kernel(node.value.func)
        for name in _bound(node)
    }
