"""The scan of CUDA sources for libraries in the kernels' place, and for settings of the device. On tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ..cpp_tokens import Token, tokens
from ..report import Finding, Severity
from .substitution import HEAVY, METHODS

LIBRARY_PREFIXES = ("cublas", "cudnn", "cusolver", "cusparse", "cufft", "nvjpeg", "cutensor")
SCOPES = ("at", "torch", "aten")
MORE = {
    *("mul", "mul_out", "add_out", "sum", "sum_out", "mean", "mean_out", "softmax", "log_softmax", "layer_norm"),
    *("rms_norm", "native_layer_norm", "topk", "cross_entropy_loss", "gelu", "silu", "mm_out", "bmm_out", "matmul_out"),
    *("addmm_out", "mul_", "sub", "div", "exp", "where", "rsqrt", "pow"),
}  # fmt: skip
LAUNCHERS = {
    *("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchKernelEx", "cudaLaunchCooperativeKernel", "cuLaunchKernel"),
    *("cuLaunchKernelEx",),
}  # fmt: skip
PERSISTING = {
    *("cudaLimitPersistingL2CacheSize", "cudaAccessPropertyPersisting", "accessPolicyWindow", "cudaAccessPolicyWindow"),
    *("cudaStreamAttributeAccessPolicyWindow", "cudaLaunchAttributeAccessPolicyWindow", "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"),
    *("cudaKernelNodeAttributeAccessPolicyWindow", "CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW"),
}  # fmt: skip
HARMLESS_LIMITS = {"cudaLimitStackSize", "cudaLimitPrintfFifoSize", "cudaLimitMallocHeapSize"}
SETTINGS: dict[str, tuple[str, Severity, str]] = {
    **dict.fromkeys(
        ("cudaLaunchHostFunc", "cudaStreamAddCallback", "cuLaunchHostFunc", "cuStreamAddCallback"),
        ("threads", "block", "has the host do something later, on a thread of the driver's"),
    ),
    **dict.fromkeys(
        ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaStreamUpdateCaptureDependencies", "cuStreamBeginCapture",
         "cuStreamEndCapture", "cudaThreadExchangeStreamCaptureMode"),
        ("streams", "block", "meddles with the graph into which it is captured"),
    ),
    **dict.fromkeys(
        ("cudaGraphLaunch", "cuGraphLaunch", "cudaGraphInstantiate"),
        ("streams", "warning", "works by a graph of its own, which keeps the addresses of the call that it was made in"),
    ),
    **dict.fromkeys(
        ("cudaStreamIsCapturing", "cudaStreamGetCaptureInfo", "cudaStreamGetCaptureInfo_v2", "cuStreamIsCapturing",
         "cuStreamGetCaptureInfo"),
        ("streams", "warning", "asks whether it is captured: a call that is timed must be like one that is looked at"),
    ),
    **dict.fromkeys(
        ("cudaDeviceReset", "cuDevicePrimaryCtxReset", "cuCtxDestroy", "cudaSetDeviceFlags", "cudaDeviceSetCacheConfig"),
        ("global-state", "block", "changes the device for everybody in this process"),
    ),
    **dict.fromkeys(
        ("cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuCtxPushCurrent", "cuCtxSetCurrent",
         "cuGreenCtxCreate", "cudaGreenCtxCreate"),
        ("global-state", "block", "works in a context of its own, of which nothing is timed or captured"),
    ),
    **dict.fromkeys(
        ("cudaIpcGetMemHandle", "cudaIpcOpenMemHandle", "cuIpcOpenMemHandle"), ("process", "block", "reaches other processes")
    ),
    **dict.fromkeys(
        ("cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop"),
        ("patching", "block", "switches the profiler that looks at it"),
    ),
}  # fmt: skip
BY_NAME = {"pybind11": {"exec", "eval", "eval_file", "module_", "module"}, "py": {"exec", "eval", "eval_file", "module_", "module"},
           "c10": {"Dispatcher"}, "jit": {"compile", "load"}}  # fmt: skip
"""Ways from C++ to call what has a name in Python or in torch's tables."""
STREAMS = {"cudaStreamCreate", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority", "cuStreamCreate"}
EARLY = {
    *("cudaLaunchAttributeProgrammaticStreamSerialization", "cudaLaunchAttributeProgrammaticEvent"),
    *("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION", "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT"),
}  # fmt: skip
WAITS = {"cudaGridDependencySynchronize", "wait_on_dependent_grids", "griddepcontrol_wait"}
WAIT_IN_PTX = "griddepcontrol.wait"
BEGINS_EARLY = "begins while the kernel ahead of it still writes, and waits for nothing: a race, and calls that overlap"
ENTRY_POINTS = {
    "cudaGetDriverEntryPoint",
    "cudaGetDriverEntryPointByVersion",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
}
TENSOR_MAPS = '"cuTensorMap'
"""What honest kernels look up in the driver: how tensor maps are encoded."""
Hit = tuple[Token, str, Severity, str]


def scan_cuda(files: Mapping[str, str]) -> list[Finding]:
    """Findings over all C++ and CUDA files of one candidate for the cuda backend."""
    found, all_code = [], []
    early: list[tuple[str, Token]] = []
    for path, text in files.items():
        code = list(tokens(text))
        all_code += code
        for token, rule, severity, evidence in [*_libraries(code), *_settings(code), *_looked_up(code)]:
            found.append(Finding(rule=rule, severity=severity, evidence=evidence, path=path, line=token.line))
        early += [(path, token) for token in code if token.text in EARLY]
    if early and not any(t.text in WAITS or (t.kind == "string" and WAIT_IN_PTX in t.text) for t in all_code):
        path, token = early[0]
        told = f"{token.text}: it {BEGINS_EARLY}"
        found.append(Finding(rule="streams", severity="block", evidence=told, path=path, line=token.line))
    if (why := _no_kernel(all_code)) and files:
        found.append(Finding(rule="decoy-kernel", severity="block", evidence=why, path=next(iter(files)), line=1))
    return found


def _text(code: list[Token], i: int) -> str:
    return code[i].text if 0 <= i < len(code) else ""


def _libraries(code: list[Token]) -> Iterator[Hit]:
    torch = any(t.kind == "name" and t.text in ("torch", "at", "ATen") for t in code)
    for i, token in enumerate(code):
        name, before, after = token.text, _text(code, i - 1), _text(code, i + 1)
        if token.kind != "name":
            continue
        if before == "::" and name in BY_NAME.get(_text(code, i - 2), ()) and after in ("(", "::"):
            yield token, "loading", "block", f"{_text(code, i - 2)}::{name}: calls by a name that cannot be read here"
        elif before == "::" and _text(code, i - 2) == "cub" and name.startswith("Device"):
            yield token, "library-call", "warning", f"cub::{name}: a library's kernel does a part of the work"
        elif name == "thrust" and after == "::" and _text(code, i + 3) == "(":
            yield (
                token,
                "library-call",
                "warning",
                f"thrust::{_text(code, i + 2)}: a library's kernel does a part of the work",
            )
        if after != "(":
            continue
        if name.startswith(LIBRARY_PREFIXES):
            yield token, "library-call", "block", f"{name}: a library's kernel, where its own was asked for"
        elif before == "::" and _text(code, i - 2) in SCOPES and (name in HEAVY or name in MORE):
            yield token, "library-call", "block", f"{_text(code, i - 2)}::{name}: the library's kernel, not its own"
        elif before in (".", "->") and torch and name in METHODS:
            yield token, "library-call", "block", f".{name}(): the library's kernel, not its own"


def _settings(code: list[Token]) -> Iterator[Hit]:
    for i, token in enumerate(code):
        if token.kind != "name":
            continue
        if token.text in PERSISTING:
            yield (
                token,
                "l2-persistence",
                "block",
                f"{token.text}: keeps data in the second-level cache from call to call",
            )
        elif token.text in ("cudaDeviceSetLimit", "cuCtxSetLimit") and _text(code, i + 1) == "(":
            if _text(code, i + 2) not in HARMLESS_LIMITS:
                yield (
                    token,
                    "l2-persistence",
                    "block",
                    f"{token.text}: changes a limit of the device ({_text(code, i + 2)})",
                )
        elif token.text in SETTINGS and _text(code, i + 1) == "(":
            rule, severity, what = SETTINGS[token.text]
            yield token, rule, severity, f"{token.text}: it {what}"
        elif token.text in STREAMS and _text(code, i + 1) == "(":
            yield (
                token,
                "streams",
                "note",
                f"{token.text}: works on a stream of its own, which must be joined to the caller's",
            )


def _looked_up(code: list[Token]) -> Iterator[Hit]:
    """Functions of the driver that are asked for by a name in a string."""
    for i, token in enumerate(code):
        if token.text in ENTRY_POINTS and _text(code, i + 1) == "(":
            name = _text(code, i + 2)
            if not name.startswith('"'):
                yield (
                    token,
                    "loading",
                    "warning",
                    f"{token.text}: looks up a function of the driver by a name made elsewhere",
                )
            elif not name.startswith(TENSOR_MAPS):
                yield token, "loading", "block", f"{token.text}: looks up {name[:60]} in the driver"


def _no_kernel(code: list[Token]) -> str:
    names = {t.text for t in code if t.kind == "name"}
    if "__global__" not in names:
        return "" if names & {"cutlass", "cute"} else "there is no __global__ function in it"
    launched = any(a.text == "<<" and b.text == "<" for a, b in pairwise(code))
    return "" if launched or names & LAUNCHERS or "cutlass" in names else "its kernels are defined and never launched"
