"""The scan of Python sources, on the syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import TypeGuard

from ..report import Finding, Severity

Hit = tuple[str, Severity, str]

MODULES: dict[str, Hit] = {
    **dict.fromkeys(("ctypes", "cffi", "_ctypes"), ("native", "block", "reaches memory and libraries from Python")),
    **dict.fromkeys(("subprocess", "multiprocessing", "pty"), ("process", "block", "starts processes")),
    **dict.fromkeys(("threading", "_thread", "concurrent", "asyncio"), ("threads", "block", "starts threads")),
    **dict.fromkeys(("socket", "ssl", "http", "urllib", "requests", "httpx"), ("network", "block", "opens connections")),
    **dict.fromkeys(("shutil", "tempfile", "pathlib", "mmap", "io", "pickle", "shelve"), ("files", "block", "reaches for files")),
    **dict.fromkeys(
        ("inspect", "gc", "tracemalloc", "traceback", "faulthandler", "bdb", "pdb", "trace"),
        ("frames", "block", "looks into the process that runs it"),
    ),
    **dict.fromkeys(
        ("importlib", "builtins", "pip", "ensurepip", "runpy", "code", "codeop", "imp", "pkgutil", "zipimport"),
        ("loading", "block", "loads or replaces other code"),
    ),
    **dict.fromkeys(("signal", "resource", "atexit"), ("signals", "block", "changes how the process runs")),
    **dict.fromkeys(("os", "sys"), ("module", "note", "is seldom needed in a kernel")),
    "inside": ("harness", "block", "reaches into the loop that calls it"),
    "candidate_kernel": ("harness", "block", "reaches for itself as the harness sees it"),
    "time": ("module", "note", "reads the clock"),
}  # fmt: skip
ORDINARY = {
    *("__future__", "abc", "argparse", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "enum"),
    *("functools", "heapq", "itertools", "json", "logging", "math", "numbers", "operator", "platform", "random", "re"),
    *("statistics", "string", "struct", "textwrap", "types", "typing", "warnings", "weakref", "fractions", "decimal"),
}  # fmt: skip
"""Of the standard library, what kernels import. Anything else is said."""
CALLS: dict[str, Hit] = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), ("loading", "block", "runs code that cannot be read here")),
    "open": ("files", "block", "reaches for files"),
    **dict.fromkeys(("globals", "locals", "vars"), ("frames", "warning", "looks at names that it was not given")),
}  # fmt: skip
DOTTED: dict[str, Hit] = {
    **dict.fromkeys(
        ("os.system", "os.popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.kill", "os.killpg"),
        ("process", "block", "starts or reaches other processes"),
    ),
    **dict.fromkeys(("os._exit", "os.abort", "sys.exit"), ("process", "block", "ends the process that is measured")),
    **dict.fromkeys(
        ("os.open", "os.read", "os.write", "os.listdir", "os.walk", "os.scandir", "os.remove", "os.fdopen"),
        ("files", "block", "reaches for files"),
    ),
    **dict.fromkeys(("os.sched_setaffinity", "os.nice"), ("threads", "block", "changes how it is scheduled")),
    **dict.fromkeys(
        ("sys._getframe", "sys._current_frames", "sys.monitoring", "sys.addaudithook",
         "sys.settrace", "sys.setprofile", "sys.modules"),
        ("frames", "block", "looks into the process that runs it"),
    ),
    **dict.fromkeys(
        ("torch.set_num_threads", "torch.set_num_interop_threads", "torch.multiprocessing"),
        ("threads", "block", "asks for more than the one thread that is timed"),
    ),
    **dict.fromkeys(
        ("torch.load", "torch.save", "torch.from_file", "torch.hub", "torch.package", "numpy.load", "numpy.save",
         "numpy.memmap", "numpy.fromfile", "np.load", "np.save", "np.memmap", "np.fromfile"),
        ("files", "block", "reaches for files"),
    ),
    **dict.fromkeys(
        ("torch.utils.cpp_extension", "torch.ops.load_library", "torch.classes.load_library"),
        ("loading", "block", "builds or loads other code while it runs"),
    ),
    **dict.fromkeys(
        ("torch.cuda.Stream", "torch.cuda.stream", "torch.Stream"), ("streams", "block", "works on a stream of its own")
    ),
}  # fmt: skip
ATTRIBUTES = {
    "__subclasses__", "__globals__", "__builtins__", "__code__", "__closure__", "f_back", "f_globals", "f_locals",
    "tb_frame", "gi_frame", "cr_frame", "__getattribute__", "__traceback__",
}  # fmt: skip
EVERYWHERE = {
    *("torch.set_default_dtype", "torch.set_default_device", "torch.set_default_tensor_type", "torch.set_flush_denormal"),
    *("torch.set_float32_matmul_precision", "torch.use_deterministic_algorithms", "torch.manual_seed", "torch.seed"),
    *("torch.set_deterministic_debug_mode", "torch.autograd.set_detect_anomaly", "torch.set_warn_always"),
    *("torch.cuda.set_per_process_memory_fraction", "torch.cuda.memory.change_current_allocator", "torch.set_printoptions"),
    *("sys.setrecursionlimit", "sys.setswitchinterval", "numpy.seterr", "numpy.random.seed"),
}  # fmt: skip
"""Settings of the whole process. Who calls the kernel computes with them afterwards."""
CHANGES_RESULTS = {"torch.set_default_dtype", "torch.set_default_device", "torch.set_default_tensor_type"}
TORCH_OPERATORS = {"aten", "prims", "prim", "_", "quantized", "torch"}
MODES = ("TorchFunctionMode", "TorchDispatchMode")
MOST_ALIGNMENT_BYTES = 4096
REFERENCES = {"reference", "problem_reference", "problem_inputs", "baselines"}
HIDDEN_MODULES = {
    "threading", "_thread", "subprocess", "ctypes", "socket", "importlib", "inspect", "gc", "builtins", "shutil", "tempfile",
    "mmap", "pickle", "multiprocessing", "sys",
}  # fmt: skip
"""Modules that other modules have imported: ``torch.utils.data.dataloader.threading``."""
CONTAINERS = {"dict", "list", "set", "OrderedDict", "defaultdict", "WeakKeyDictionary", "WeakValueDictionary", "deque"}
WRITES = {"append", "add", "update", "setdefault", "insert", "extend", "pop", "popitem", "appendleft"}
IDENTITIES = {"data_ptr", "id", "hash", "untyped_storage", "_version", "tobytes"}


def scan_python(path: str, text: str) -> list[Finding]:
    """Findings of one file; a file that does not parse has none here, the build says why it does not."""
    tree = parsed(text)
    if tree is None:
        return []
    scanner = Scanner(tree)
    hits = [
        *scanner.imports(),
        *scanner.names(),
        *scanner.patches(),
        *scanner.state(),
        *scanner.memos(),
        *scanner.settings(),
    ]
    return [
        Finding(rule=rule, severity=severity, evidence=evidence, path=path, line=line)
        for line, (rule, severity, evidence) in hits
    ]


def parsed(text: str) -> ast.Module | None:
    """The tree of what Python would run: by the encoding that the file declares, and without what it does only as a
    program of its own (``if __name__ == "__main__":``). Nothing where it does not parse."""
    try:
        tree = ast.parse(text.encode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    tree.body = [kept for node in tree.body for kept in (node.orelse if _is_main(node) else [node])]  # type: ignore[attr-defined]
    return tree


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")


class Scanner:
    """One pass for each question; ``aliases`` maps local names to what was imported under them."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.aliases: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    self.aliases[a.asname or a.name.partition(".")[0]] = (
                        a.name if a.asname else a.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        self.roots = {name.partition(".")[0] for name in self.aliases.values()}

    def dotted(self, node: ast.expr) -> str:
        """``torch.cuda.Stream`` for an attribute chain on an imported name; else what is written, or nothing."""
        parts: list[str] = []
        while (step := part_of(node)) is not None:
            node, part = step
            parts.append(part)
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])

    def imports(self) -> Iterator[tuple[int, Hit]]:
        for node in ast.walk(self.tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{a.name}" for a in node.names]
            for name in names:
                if hit := MODULES.get(name.partition(".")[0]):
                    yield _line(node), (hit[0], hit[1], f"imports {name.partition('.')[0]}: it {hit[2]}")
                elif (root := name.partition(".")[0]) in sys.stdlib_module_names - ORDINARY:
                    severity: Severity = "warning" if root.startswith("_") or root in ("posix", "nt") else "note"
                    yield _line(node), ("module", severity, f"imports {root}, which is seldom needed in a kernel")
                if name.partition(".")[0] in REFERENCES:
                    yield _line(node), ("reference", "block", f"imports {name}: the reference, not a kernel of its own")
                if hit := _dotted_hit(name):
                    yield _line(node), (hit[0], hit[1], f"{name}: it {hit[2]}")

    def names(self) -> Iterator[tuple[int, Hit]]:
        defined = {n.name for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        defined |= {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        defined |= {n.arg for n in ast.walk(self.tree) if isinstance(n, ast.arg)}
        called = {id(n.func) for n in ast.walk(self.tree) if isinstance(n, ast.Call)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and id(node) not in called and node.id in ("eval", "exec", "__import__"):
                if node.id not in defined and isinstance(node.ctx, ast.Load):
                    yield (
                        _line(node),
                        ("loading", "block", f"hands on {node.id}: it runs code that cannot be read here"),
                    )
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
                if (part := folded(node.args[1])) is not None:
                    yield from self._uses(node, part)
                elif self._root(node.args[0]) in self.aliases:
                    text = "looks up a part of a module by a name that is made while it runs"
                    yield _line(node), ("hidden-name", "warning", text)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name in CALLS and name not in defined and name not in self.aliases:
                    rule, severity, what = CALLS[name]
                    yield _line(node), (rule, severity, f"calls {name}(): it {what}")
            elif isinstance(node, ast.Attribute):
                if node.attr == "__dict__" and self._root(node.value) in self.aliases:
                    yield _line(node), ("hidden-name", "warning", "looks up a part of a module in its table of names")
                yield from self._uses(node, node.attr)

    def _uses(self, node: ast.expr, part: str) -> Iterator[tuple[int, Hit]]:
        """``x.part``, or ``getattr(x, "part")``."""
        if part in ATTRIBUTES:
            yield _line(node), ("frames", "block", f"uses {part}: it looks into the process that runs it")
        name = self.dotted(node)
        if name.partition(".")[0] not in self.roots:
            return
        if hit := DOTTED.get(name):
            yield _line(node), (hit[0], hit[1], f"{name}: it {hit[2]}")
        elif part in HIDDEN_MODULES:
            rule, _, what = MODULES[part]
            yield _line(node), (rule, "block", f"{name}: it {what}")

    def patches(self) -> Iterator[tuple[int, Hit]]:
        """Assignments into imported modules: patched timers, streams, functions."""
        for node in ast.walk(self.tree):
            for target in _targets(node):
                if isinstance(target, ast.Attribute) and self._root(target) in self.aliases:
                    name = self.dotted(target)
                    if not name.startswith(("torch.backends.", "torch._dynamo.config", "torch._inductor.config")):
                        yield target.lineno, ("patching", "block", f"replaces {name}")
            if self._takes_place(node):
                text = "registers its own kernel for an operator of torch's, for everybody in the process"
                yield _line(node), ("patching", "block", text)
            if self._sets_part(node):
                yield _line(node), ("patching", "block", f"replaces a part of {self.dotted(node.args[0])}")

    def _takes_place(self, node: ast.AST) -> bool:
        """``Library("aten", "IMPL")``, ``impl("aten::mul", …)``: not an operator in a namespace of its own."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        if not self.dotted(node.func).startswith(("torch.library.", "torch._C.")):
            return False
        name = folded(node.args[0])
        return name is not None and name.partition("::")[0] in TORCH_OPERATORS

    def _sets_part(self, node: ast.AST) -> TypeGuard[ast.Call]:
        """``setattr(torch, …)``."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            return False
        return node.func.id in ("setattr", "delattr") and self._root(node.args[0]) in self.aliases

    def _root(self, node: ast.expr) -> str:
        while (step := part_of(node)) is not None:
            node = step[0]
        return node.id if isinstance(node, ast.Name) else ""

    def state(self) -> Iterator[tuple[int, Hit]]:
        """Containers at module level, or in default arguments, that functions write to: caches of answers look so."""
        containers = {
            target.id
            for node in self.tree.body
            for target in _targets(node)
            if isinstance(target, ast.Name) and _is_container(getattr(node, "value", None))
        }
        for function in [n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]:
            arguments = function.args.args[len(function.args.args) - len(function.args.defaults) :]
            defaults = zip(arguments, function.args.defaults, strict=True)
            kept = containers | {a.arg for a, default in defaults if _is_container(default)}
            identities: set[str] | None = None
            for node in ast.walk(function):
                if name := _written(node, kept):
                    identities = _identities(function) if identities is None else identities
                    if identities:
                        text = f"keeps {name} from call to call, and asks who an input is ({', '.join(sorted(identities))})"
                        yield _line(node), ("state-by-identity", "block", text)
                    else:
                        yield _line(node), ("state", "warning", f"writes to {name}, which lives from call to call")

    def settings(self) -> Iterator[tuple[int, Hit]]:
        """Calls that change what everybody else in the process computes, for as long as it lives."""
        modes = {n.name for n in ast.walk(self.tree) if isinstance(n, ast.ClassDef) and self._is_mode(n)}
        within = {id(i.context_expr) for n in ast.walk(self.tree) if isinstance(n, ast.With) for i in n.items}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and id(node) not in within and (name := self.dotted(node.func)) in EVERYWHERE:
                severity: Severity = "block" if name in CHANGES_RESULTS else "warning"
                text = f"{name}: it changes a setting of the whole process, and what others compute there"
                yield _line(node), ("global-state", severity, text)
            elif modes and isinstance(node, ast.Attribute) and node.attr == "__enter__":
                text = "enters a mode that sees every later call of torch in this process, and does not leave it"
                yield _line(node), ("patching", "block", text)

    def _is_mode(self, node: ast.ClassDef) -> bool:
        return any(self.dotted(base).rpartition(".")[2] in MODES for base in node.bases)

    def memos(self) -> Iterator[tuple[int, Hit]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    call = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if self.dotted(call) in ("functools.lru_cache", "functools.cache"):
                        yield _line(node), ("state", "warning", f"{node.name} remembers its results from call to call")


def _dotted_hit(name: str) -> Hit | None:
    parts = name.split(".")
    return next((DOTTED[p] for n in range(len(parts), 1, -1) if (p := ".".join(parts[:n])) in DOTTED), None)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return [node.target]
    return []


def _is_container(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in CONTAINERS


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _written(node: ast.AST, names: set[str]) -> str | None:
    """The container among ``names`` that this node writes to."""
    for target in _targets(node):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in names:
            return target.value.id
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES):
        return None
    owner = node.func.value
    return owner.id if isinstance(owner, ast.Name) and owner.id in names else None


def _identities(function: ast.FunctionDef) -> set[str]:
    """By what this function tells inputs apart: addresses, versions, bytes. How an address is aligned tells none apart."""
    aligned = {
        id(each)
        for node in ast.walk(function)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd) and _is_small(node.right)
        for each in ast.walk(node.left)
    }
    found = {
        n.attr
        for n in ast.walk(function)
        if isinstance(n, ast.Attribute) and n.attr in IDENTITIES and id(n) not in aligned
    }
    calls = [n.func for n in ast.walk(function) if isinstance(n, ast.Call)]
    return found | {c.id for c in calls if isinstance(c, ast.Name) and c.id in IDENTITIES}


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and 0 < node.value <= MOST_ALIGNMENT_BYTES


def part_of(node: ast.expr) -> tuple[ast.expr, str] | None:
    """``x`` and ``"part"`` of ``x.part`` and of ``getattr(x, "part")``."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
        part = folded(node.args[1])
        return None if part is None else (node.args[0], part)
    return None


def folded(node: ast.expr) -> str | None:
    """``"mat" + "mul"`` and ``"".join(["mat", "mul"])`` as one string; nothing for what is not written out."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = folded(node.left), folded(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "join" and len(node.args) == 1:
        parts = [folded(each) for each in getattr(node.args[0], "elts", [None])]
        between = folded(node.func.value)  # type: ignore[attr-defined]
        return None if between is None or None in parts else between.join(p for p in parts if p is not None)
    return None
