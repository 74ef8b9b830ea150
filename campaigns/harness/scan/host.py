"""The host side of a Python candidate that holds kernels: its functions, what they launch, and what flows where.

Names stand for values, whatever the order of the lines: more is taken to flow than really does, so that what is said
*not* to happen does not happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .effort import Effort, Flow, by_target

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
    """All Python files of one candidate together. ``outputs``: how many of ``run``'s last parameters it writes.

    Raises ``TooInvolved`` where reading it would take too long.
    """

    def __init__(self, trees: dict[str, ast.Module], outputs: int) -> None:
        self.trees, self.effort = trees, Effort()
        self.jitted = {name: (path, node) for path, tree in trees.items() for name, node in jit_defs(tree)}
        self.plain = {name for tree in trees.values() for name in _plain(tree)}
        self.kernels = set(self.jitted) | {name for tree in trees.values() for name in made_kernels(tree)}
        self.functions: dict[str, list[Function]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        statements: list[ast.AST] = []
        calls: list[ast.Call] = []
        for path, tree in trees.items():
            for node in self.walk(tree):
                if isinstance(node, ast.FunctionDef) and not is_jit(node):
                    self.functions.setdefault(node.name, []).append(_function(node, path))
                elif isinstance(node, ast.ClassDef):
                    self.classes[node.name] = node
                elif isinstance(node, ast.Call):
                    calls.append(node)
                elif isinstance(
                    node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.withitem
                ):
                    statements.append(node)
        self._flows(statements, calls)
        self.reached = self._reachable()
        self.made: dict[str, list[ast.expr]] = {}
        """By name, what ``run`` and what it calls assign to it."""
        for _, node in self.nodes():
            if isinstance(node, ast.Assign):
                for name in {t.id for t in node.targets if isinstance(t, ast.Name)}:
                    self.made.setdefault(name, []).append(node.value)
        self.carriers = self.reading.closure(self.kernels)
        self.launching = self._launching()
        self.computing: dict[int, bool] = {}
        run = next(iter(self.functions.get("run", [])), None)
        parameters = [a.arg for a in run.node.args.args] if run else []
        self.run = run
        self.inputs = set(parameters[:-outputs] if outputs < len(parameters) else [])
        self.outs = self._aliases(set(parameters) - self.inputs)
        self.tensors = self._aliases(set(parameters))

    def walk(self, node: ast.AST) -> Iterator[ast.AST]:
        for each in ast.walk(node):
            self.effort.spend(1)
            yield each

    def _flows(self, statements: list[ast.AST], calls: list[ast.Call]) -> None:
        """What each statement reads and writes; where the same memory goes, by views, containers and calls."""
        self.reading, self.holding = Flow(self.effort), Flow(self.effort)
        flow: list[tuple[set[str], set[str]]] = []
        for node in statements:
            bound, read = _bound(node), _read(node)
            flow.append((read, bound))
            self.reading.add(read, bound)
            value = getattr(node, "value", None) or getattr(node, "iter", None) or getattr(node, "context_expr", None)
            if value is not None:
                self.holding.add(held(value), bound)
        self.origins = by_target(flow, self.effort)
        for call in calls:
            for sources, parameters in self._handed(call):
                self.holding.add(sources, parameters)

    def _reachable(self) -> list[Function]:
        """What ``run`` may call; everything where there is no plain ``run``."""
        self.names: set[str] | None = None
        if "run" not in self.functions:
            return [function for namesakes in self.functions.values() for function in namesakes]
        top: dict[str, set[str]] = {}  # what a module-level name is made of
        for tree in self.trees.values():
            for statement in tree.body:
                for name in _bound(statement):
                    top.setdefault(name, set()).update(_read(statement))
        found: list[Function] = []
        todo, seen = ["run"], set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.classes:
                todo += [n.name for n in self.walk(self.classes[name]) if isinstance(n, ast.FunctionDef)]
            todo += top.get(name, ())
            for function in self.functions.get(name, []):
                found.append(function)
                todo += function.names | function.parts
            self.effort.spend(1)
        self.names = seen
        return found

    def nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """Every node of what ``run`` may call, once."""
        seen: set[int] = set()
        for function in self.reached:
            for node in self.walk(function.node):
                if id(node) not in seen:
                    seen.add(id(node))
                    yield function.path, node

    def top_nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """Every node of the module-level statements and class bodies that make the names which ``run`` may come to."""
        for path, tree in self.trees.items():
            for statement in tree.body:
                inside = statement.body if isinstance(statement, ast.ClassDef) else [statement]
                wanted = {statement.name} if isinstance(statement, ast.ClassDef) else _bound(statement)
                for each in inside if self.names is None or wanted & self.names else []:
                    if not isinstance(each, ast.FunctionDef | ast.ClassDef):
                        for node in self.walk(each):
                            yield path, node

    def is_launch(self, node: ast.AST) -> bool:
        """``kernel[grid](…)``, ``kernel(…).launch(…)``, ``compiled(…)``: a call of something made of a kernel."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Subscript):
            return not isinstance(node.func.slice, ast.Constant | ast.JoinedStr) or bool(
                self.carriers & _read(node.func)
            )
        return bool(self.carriers & _read(node.func)) and getattr(node.func, "attr", "") != "compile"

    def launches(self) -> list[tuple[str, ast.Call]]:
        return [(path, node) for path, node in self.nodes() if isinstance(node, ast.Call) and self.is_launch(node)]

    def launched_names(self) -> set[str]:
        """Every name that a launch is given."""
        found: set[str] = set()
        for _, call in self.launches():
            for argument in [*call.args, *(k.value for k in call.keywords)]:
                found |= held(argument) - self.plain
        return (self._aliases(found) | self.reading.closure(found - self.inputs, self.plain)) - self.plain

    def _aliases(self, names: set[str]) -> set[str]:
        """Names that may hold the same memory: views, containers, parameters that they are handed to."""
        return self.holding.closure(names)

    def _handed(self, call: ast.Call) -> Iterator[tuple[set[str], set[str]]]:
        """For each call of a local function: the names that go into it, and the parameters that they become."""
        name = called(call)
        for function in self.functions.get(name, []):
            parameters = [a.arg for a in function.node.args.args]
            rest = {a.arg for a in (function.node.args.vararg, function.node.args.kwarg) if a is not None}
            starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
            if starred:
                given = set().union(*(_read(a) for a in [*call.args, *(k.value for k in call.keywords)]))
                yield given, set(parameters) | rest
            shift = 1 if parameters[:1] == ["self"] else 0
            for index, argument in enumerate(call.args):
                self.effort.spend(1)
                yield _read(argument), {parameters[index + shift]} if index + shift < len(parameters) else rest
            for keyword in call.keywords:
                if keyword.arg:
                    yield _read(keyword.value), {keyword.arg} if keyword.arg in parameters else rest

    def sources(self, expression: ast.expr) -> set[str]:
        """The names that an expression's value may come from."""
        return self.origins.closure(_read(expression), self.plain)

    def computes(self, expression: ast.AST) -> bool:
        """Whether torch does arithmetic on a tensor in it: anything but views, memory and plain numbers."""
        for node in self.walk(expression):
            if isinstance(node, ast.BinOp) and self.tensors & held(node):
                return True
            if not isinstance(node, ast.Call) or self.is_launch(node):
                continue
            name = called(node)
            local = [] if isinstance(node.func, ast.Attribute) else self.functions.get(name, [])
            if local:
                if any(self.computes_in(f) for f in local):
                    return True
            elif name not in FREE and self.tensors & held(node):
                return True
        return False

    def computes_in(self, function: Function) -> bool:
        """The same of a function that launches nothing itself. One that is asked about already says no for now."""
        key = id(function.node)
        if key not in self.computing:
            self.computing[key] = False
            self.computing[key] = not self.launches_in(function.node) and self.computes(function.node)
        return self.computing[key]

    def _launching(self) -> set[str]:
        """Names of functions that launch a kernel, or call one that does."""
        callers = Flow(self.effort)
        direct = set()
        for name, namesakes in self.functions.items():
            for function in namesakes:
                for node in self.walk(function.node):
                    if self.is_launch(node):
                        direct.add(name)
                    elif isinstance(node, ast.Call):
                        callers.add({called(node)}, {name})
        return callers.closure(direct)

    def launches_in(self, node: ast.AST) -> bool:
        """Whether a kernel is launched in it, also by a function of the candidate's that it calls."""
        return any(
            self.is_launch(each) or (isinstance(each, ast.Call) and called(each) in self.launching)
            for each in self.walk(node)
        )


def called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


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


def held(node: ast.AST) -> set[str]:
    """Names whose own memory the value of it may be: none behind ``.shape`` or ``len(…)``."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return held(node.value) if node.attr in ("T", "mT", "data", "real") else set()
    if isinstance(node, ast.Call):
        name = called(node)
        own = held(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        if name in ("size", "stride", "numel", "dim", "len", "range", "element_size", "cdiv", "next_power_of_2", "min"):
            return set()
        return own.union(*(held(a) for a in node.args), *(held(k.value) for k in node.keywords))
    return set().union(*(held(child) for child in ast.iter_child_nodes(node)))


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
