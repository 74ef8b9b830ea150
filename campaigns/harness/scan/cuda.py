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
STREAMS = {"cudaStreamCreate", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority", "cuStreamCreate"}
Hit = tuple[Token, str, Severity, str]


def scan_cuda(files: Mapping[str, str]) -> list[Finding]:
    """Findings over all C++ and CUDA files of one candidate for the cuda backend."""
    found, all_code = [], []
    for path, text in files.items():
        code = list(tokens(text))
        all_code += code
        for token, rule, severity, evidence in [*_libraries(code), *_settings(code)]:
            found.append(Finding(rule=rule, severity=severity, evidence=evidence, path=path, line=token.line))
    if (why := _no_kernel(all_code)) and files:
        found.append(Finding(rule="decoy-kernel", severity="block", evidence=why, path=next(iter(files)), line=1))
    return found


def _text(code: list[Token], i: int) -> str:
    return code[i].text if 0 <= i < len(code) else ""


def _libraries(code: list[Token]) -> Iterator[Hit]:
    torch = any(t.kind == "name" and t.text in ("torch", "at", "ATen") for t in code)
    for i, token in enumerate(code):
        name, before, after = token.text, _text(code, i - 1), _text(code, i + 1)
        if token.kind != "name" or after != "(":
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
        elif token.text in STREAMS and _text(code, i + 1) == "(":
            yield (
                token,
                "streams",
                "note",
                f"{token.text}: works on a stream of its own, which must be joined to the caller's",
            )


def _no_kernel(code: list[Token]) -> str:
    names = {t.text for t in code if t.kind == "name"}
    if "__global__" not in names:
        return "" if names & {"cutlass", "cute"} else "there is no __global__ function in it"
    launched = any(a.text == "<<" and b.text == "<" for a, b in pairwise(code))
    return "" if launched or names & LAUNCHERS or "cutlass" in names else "its kernels are defined and never launched"
