"""A DSL was asked for: does it do the work, or does a library in its place? Python sources (Triton, CuTe DSL).

Blocking only where no kernel's result can be what is written: sorting indices by torch, clearing a buffer or summing
what kernels left is ordinary. How much of the time a library takes is asked on the GPU (``stages/engagement.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ..report import Finding, Severity
from .copying import only_copies
from .host import FREE, Host, held
from .python import Scanner, folded, parsed

HEAVY = {
    *("matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "addmv", "mv", "einsum", "tensordot", "chain_matmul"),
    *("multi_dot", "linear", "bilinear", "scaled_dot_product_attention", "multi_head_attention_forward"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution"),
    *("_scaled_mm", "_grouped_mm", "_scaled_grouped_mm", "grouped_mm", "scaled_mm", "scaled_grouped_mm", "_int_mm"),
    *("flash_attention", "_flash_attention_forward", "_efficient_attention_forward"),
    *("inner", "dot", "vdot", "vecdot", "cdist", "Linear", "LazyLinear", "Bilinear", "Conv1d", "Conv2d", "Conv3d"),
    *("MultiheadAttention", "__matmul__", "__rmatmul__", "sgemm", "dgemm", "sgemv", "dgemv"),
}  # fmt: skip
"""Of torch, and of NumPy and SciPy, by any path: ``torch.mm``, ``torch.ops.aten.mm.default``, ``torch.Tensor.mm``."""
METHODS = {"matmul", "mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "inner", "__matmul__", "__rmatmul__"}
ROOTS = ("torch", "numpy", "scipy")
WHOLE = {
    *("softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "cross_entropy"),
    *("nll_loss", "gelu", "silu", "glu", "swiglu", "scatter_softmax"),
}  # fmt: skip
LIBRARIES = {
    *("flash_attn", "flash_attn_interface", "flashinfer", "xformers", "cupy", "bitsandbytes", "liger_kernel", "apex"),
    *("transformer_engine", "vllm", "sgl_kernel", "deep_gemm", "aiter", "triton_kernels", "fla", "cuequivariance_torch"),
    *("jax", "cudnn", "tensorrt", "numba", "quack"),
}  # fmt: skip
EARLY_LAUNCHES, EARLY_WAITS = {"launch_pdl", "use_pdl"}, {"gdc_wait", "griddepcontrol_wait"}
Hit = tuple[str, int, str, Severity, str]


def scan_substitution(files: Mapping[str, str], outputs: int) -> list[Finding]:
    """Findings over all Python files together; none where one of them does not parse: the build says so."""
    trees: dict[str, ast.Module] = {}
    for path, text in files.items():
        tree = parsed(text)
        if tree is None:
            return []
        trees[path] = tree
    host = Host(trees, outputs)
    hits: list[Hit] = [*_libraries(trees), *_kernels(host), *_early(trees)]
    if host.kernels:
        hits += [*_calls(host), *_writes(host), *_carries(host), *_fallbacks(host)]
    found: dict[tuple[str, str, int], Finding] = {}
    for path, line, rule, severity, evidence in hits:
        key = (rule, path, line)
        found.setdefault(key, Finding(rule=rule, severity=severity, evidence=evidence, path=path, line=line))
    return list(found.values())


def _libraries(trees: Mapping[str, ast.Module]) -> Iterator[Hit]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                if name.partition(".")[0] in LIBRARIES or name.startswith("triton.ops"):
                    yield path, _line(node), "library-call", "block", f"imports {name}, whose kernels are not its own"


def _early(trees: Mapping[str, ast.Module]) -> Iterator[Hit]:
    """Programmatic dependent launch without a wait in any kernel."""
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    for _, node in nodes:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        words = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if name in EARLY_WAITS or "griddepcontrol.wait" in words:
            return
    for path, node in nodes:
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg in EARLY_LAUNCHES and getattr(keyword.value, "value", True):
                text = (
                    f"{keyword.arg}: it begins while the kernel ahead of it still writes, and waits for nothing: a race"
                )
                yield path, _line(node), "streams", "block", f"{text}, and calls that overlap"


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _kernels(host: Host) -> Iterator[Hit]:
    """Defined at all, launched, and given the output?"""
    path, line = (host.run.path, host.run.node.lineno) if host.run else (next(iter(host.trees)), 1)
    if not host.kernels:
        yield path, line, "decoy-kernel", "block", "there is no kernel in it, where a kernel language was asked for"
        return
    launches = host.launches()
    if not launches:
        names = ", ".join(sorted(host.kernels))
        yield path, line, "decoy-kernel", "block", f"nothing that run calls launches a kernel ({names} is only defined)"
        return
    read = {n.id for tree in host.trees.values() for n in ast.walk(tree) if isinstance(n, ast.Name)}
    read |= {n.attr for tree in host.trees.values() for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for name, (where, node) in host.jitted.items():
        if name not in read:
            yield where, node.lineno, "unused-kernel", "note", f"{name} is defined and never used"
    if host.outs and not _reaches(host):
        where, call = launches[0]
        outs = ", ".join(sorted(host.outs))
        yield (
            where,
            call.lineno,
            "decoy-kernel",
            "block",
            f"no kernel is given the output ({outs}), nor what is copied there",
        )


def _reaches(host: Host) -> bool:
    """Whether some launch is given the output, or memory from which the output is then written."""
    launched = host.launched_names()
    if launched & host.outs:
        return True
    return any(host.sources(value) & launched - host.inputs for _, _, value, _, _ in _written(host))


def _written(host: Host) -> Iterator[tuple[str, int, ast.expr, str, bool]]:
    """(path, line, value, words, whether the call itself computes): where the host itself writes into an output."""
    for path, node in host.nodes():
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "out" and host.outs & _names(keyword.value):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    yield path, node.lineno, node, ast.unparse(node.func)[:60], name not in FREE
            name = getattr(node.func, "attr", "")
            in_place = name.endswith("_") and not name.startswith("_") and name != "fill_"
            if in_place and node.args and host.outs & _names(node.func.value):  # type: ignore[attr-defined]
                yield path, node.lineno, node.args[0], f"{name}()", name != "copy_"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and host.outs & _names(target.value):
                    yield path, node.lineno, node.value, "assignment", False
        elif isinstance(node, ast.AugAssign) and host.outs & _names(node.target):
            yield path, node.lineno, node.value, "assignment", True


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _carries(host: Host) -> Iterator[Hit]:
    """Kernels that compute nothing, and are given what torch has computed from the inputs."""
    launches = host.launches()
    used = {n.id for _, call in launches for n in ast.walk(call.func) if isinstance(n, ast.Name)} & host.carriers
    if not used or not used <= set(host.jitted) or not all(only_copies(host.jitted[name][1]) for name in used):
        return
    for path, call in launches:
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            if any(held(each) and host.computes(each) for each in [argument, *_made_of(host, argument)]):
                text = "its kernels only copy: a library computes from the inputs what they are given"
                yield path, call.lineno, "library-call", "block", text
                return


def _writes(host: Host) -> Iterator[Hit]:
    """An output that torch computes from inputs alone: on that path it does the kernel's work."""
    launched = host.launched_names() - host.inputs - host.outs
    for path, line, value, words, itself in _written(host):
        made = itself or any(host.computes(each) for each in [value, *_made_of(host, value)])
        if made and not host.sources(value) & launched:
            text = f"{words}: the output is computed by a library from the inputs; no kernel's result goes into it"
            yield path, line, "library-call", "block", text


def _made_of(host: Host, value: ast.expr) -> list[ast.expr]:
    """The expressions assigned to the names in a value: ``t = x * s; y.copy_(t)``."""
    return [made for name in sorted(host.sources(value) - host.inputs - host.outs) for made in host.made.get(name, ())]


def _calls(host: Host) -> Iterator[Hit]:
    """Products, attention and convolutions by a library; torch.compile, which writes kernels of its own."""
    scanners = {path: Scanner(tree) for path, tree in host.trees.items()}
    for path, node in host.nodes():
        line = _line(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield path, line, "library-call", "block", "a @ b outside a kernel: the library's matrix product"
        if not isinstance(node, ast.Call):
            if taken := _taken(scanners[path], node):
                yield path, line, "library-call", "block", taken
            continue
        name = resolved(scanners[path], node.func)
        last = name.rpartition(".")[2]
        if is_heavy(name):
            yield path, line, "library-call", "block", f"{name}: the library's kernel, where its own was asked for"
        elif (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
            and not name.startswith(("tl.", "triton."))
        ):
            yield (
                path,
                line,
                "library-call",
                "block",
                f".{node.func.attr}(): the library's kernel, where its own was asked for",
            )
        elif name.startswith("torch.") and last in WHOLE:
            yield path, line, "library-call", "warning", f"{name}: a library's kernel does a part of the work"
        elif name == "torch.compile":
            yield path, line, "library-call", "block", "torch.compile: its kernels are not the candidate's own"
        elif name == "getattr" and node.args and scanners[path].dotted(node.args[0]).startswith("torch"):
            yield path, line, "hidden-name", "warning", "looks up a part of torch by a name that is made while it runs"

    for path, node in host.top_nodes():
        if taken := _taken(scanners[path], node):
            yield path, _line(node), "library-call", "block", taken


def is_heavy(name: str) -> bool:
    """Whether a dotted name is a library's product, attention or convolution; overloads (``mm.default``) too."""
    root, *parts = name.split(".")
    return root in ROOTS and bool(HEAVY.intersection(parts))


def _taken(scanner: Scanner, node: ast.AST) -> str:
    """A library's product that is not called here but kept under another name, in a table, as a default."""
    if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
        return ""
    name = scanner.dotted(node)
    if is_heavy(name):
        return f"{name}: the library's kernel, where its own was asked for"
    return "torch.compile: its kernels are not the candidate's own" if name == "torch.compile" else ""


def resolved(scanner: Scanner, function: ast.expr) -> str:
    """The dotted name of what is called, also through ``getattr(torch, "mm")`` with a name that is written out."""
    if isinstance(function, ast.Call) and getattr(function.func, "id", "") == "getattr" and len(function.args) > 1:
        part = folded(function.args[1])
        return "" if part is None else f"{scanner.dotted(function.args[0])}.{part}"
    return scanner.dotted(function)


def _fallbacks(host: Host) -> Iterator[Hit]:
    """``try`` around a launch, and torch does it where that fails."""
    for path, node in host.nodes():
        if not isinstance(node, ast.Try) or not any(host.launches_in(each) for each in node.body):
            continue
        for handler in node.handlers:
            if any(host.computes(each) for each in handler.body) and not any(host.launches_in(e) for e in handler.body):
                text = "where the kernel fails a library computes in its place: a failed kernel must fail"
                yield path, handler.lineno, "fallback", "block", text
