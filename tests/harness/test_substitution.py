"""A kernel language was asked for: what reading the source alone must block, and the honest code that it must let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import redteam
from campaigns.harness.candidate import load_candidate
from campaigns.harness.evaluator import evaluate
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.request import CandidateSource, EvaluationRequest
from campaigns.harness.scan import scan

from .conftest import CANDIDATES, HERE, needs_sandbox

BUNDLED = Path(__file__).parents[2] / "campaigns" / "problems"
HEAD = """import torch
import triton
import triton.language as tl

@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

"""

CHEATS = {
    "a library computes, the kernel copies": (
        "library-call",
        """def run(x, w, y):
    t = (x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * w).to(y.dtype)
    k[(1,)](t, y, 3, B=4)
""",
    ),
    "an overload by its path": (
        "library-call",
        """def run(x, w, y):
    k[(1,)](torch.ops.aten.mm.default(x, w), y, 3, B=4)
""",
    ),
    "kept in a table": (
        "library-call",
        """table = {"go": torch.mm}
def run(x, w, y):
    k[(1,)](table["go"](x, w), y, 3, B=4)
""",
    ),
    "a default argument": (
        "library-call",
        """def product(a, b, f=torch.Tensor.matmul):
    return f(a, b)
def run(x, w, y):
    k[(1,)](product(x, w), y, 3, B=4)
""",
    ),
    "NumPy": (
        "library-call",
        """import numpy as np
def run(x, w, y):
    k[(1,)](torch.from_numpy(np.dot(x.numpy(), w.numpy())), y, 3, B=4)
""",
    ),
    "torch.mm before an epilogue of its own": (
        "library-call",
        """def run(x, w, y):
    t = torch.mm(x, w)
    k[(1,)](t, y, 3, B=4)
""",
    ),
    "the @ operator": (
        "library-call",
        """def run(x, w, y):
    t = x @ w
    k[(1,)](t, y, 3, B=4)
""",
    ),
    "torch.nn.functional": (
        "library-call",
        """import torch.nn.functional as F
def run(x, w, y):
    t = F.linear(x, w)
    k[(1,)](t, y, 3, B=4)
""",
    ),
    "except": (
        "fallback",
        """def run(x, w, y):
    try:
        k[(1,)](x, y, 3, B=4)
    except Exception:
        y.copy_(x * w)
""",
    ),
    "except, by functions of its own": (
        "fallback",
        """def ref(x, w):
    return x * w
def go(x, y):
    k[(1,)](x, y, 3, B=4)
def run(x, w, y):
    try:
        go(x, y)
    except RuntimeError:
        y.copy_(ref(x, w))
""",
    ),
    "another branch": (
        "library-call",
        """def run(x, w, y):
    if x.shape[0] > 4:
        k[(1,)](x, y, 3, B=4)
    else:
        torch.mul(x, w, out=y)
""",
    ),
    "never launched": (
        "decoy-kernel",
        """def run(x, w, y):
    y.copy_(x)
""",
    ),
    "launched on a dummy": (
        "decoy-kernel",
        """def run(x, w, y):
    d = torch.empty(4)
    k[(1,)](d, d, 3, B=4)
    y.copy_(x * w)
""",
    ),
    "torch.compile": (
        "decoy-kernel",
        """f = torch.compile(lambda x, w: x * w)
def run(x, w, y):
    y.copy_(f(x, w))
""",
    ),
    "getattr with the name in pieces": (
        "library-call",
        """def run(x, w, y):
    t = getattr(torch, 'm' + 'm')(x, w)
    k[(1,)](t, y, 3, B=4)
""",
    ),
    "a module": (
        "library-call",
        """class M(torch.nn.Module):
    def forward(self, x, w):
        return x @ w
m = M()
def run(x, w, y):
    k[(1,)](m(x, w), y, 3, B=4)
""",
    ),
    "in place": (
        "library-call",
        """def run(x, w, y):
    y.copy_(x)
    y.mul_(w)
    k[(1,)](x, torch.empty_like(x), 3, B=4)
""",
    ),
    "torch.ops": (
        "library-call",
        """def run(x, w, y):
    k[(1,)](torch.ops.aten.mm(x, w), y, 3, B=4)
""",
    ),
    "the reference": (
        "reference",
        """from reference import reference
def run(x, w, y):
    k[(1,)](x, y, 3, B=4)
""",
    ),
    "contextlib.suppress": (
        "library-call",
        """import contextlib
def run(x, w, y):
    with contextlib.suppress(Exception):
        k[(1,)](x, y, 3, B=4)
        return
    y.copy_(x * w)
""",
    ),
}

HONEST = {
    "a test beside it": """def check(x, w):
    return torch.mm(x, w)
def run(x, w, y):
    k[(1,)](x, y, 3, B=4)
""",
    "a copy of what a kernel left": """@triton.jit
def norm(x, t, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(t + i, v * v, mask=i < n)
def run(x, w, y):
    t = torch.empty(x.shape, dtype=torch.float32)
    norm[(1,)](x, t, 3, B=4)
    k[(1,)](t * 2, y, 3, B=4)
""",
    "plain": """def run(x, w, y):
    k[(1,)](x, y, 3, B=4)
""",
    "scratch, copied": """def run(x, w, y):
    t = torch.empty(x.shape, dtype=torch.float32)
    k[(1,)](x, t, 3, B=4)
    y.copy_(t)
""",
    "partial sums, added by torch": """def run(x, w, y):
    t = torch.zeros(4, *x.shape)
    k[(1,)](x, t, 3, B=4)
    torch.sum(t, 0, out=y)
""",
    "views, cleared output": """def run(x, w, y):
    xc = x.contiguous().view(-1)
    y.zero_()
    k[(triton.cdiv(xc.numel(), 4),)](xc, y.view(-1), xc.numel(), B=4)
""",
    "an index by torch": """def run(x, w, y):
    o = torch.cumsum(w, 0)
    s = torch.sort(w).indices.to(torch.int32)
    k[(1,)](x, y, 3, B=4)
""",
    "tried again": """def run(x, w, y):
    try:
        k[(1,)](x, y, 3, B=4, num_stages=4)
    except triton.OutOfResources:
        k[(1,)](x, y, 3, B=4, num_stages=1)
""",
    "raised again": """def run(x, w, y):
    try:
        k[(1,)](x, y, 3, B=4)
    except Exception as e:
        raise RuntimeError(f'no {x.shape}') from e
""",
    "kernels in a table": """T = {4: k}
def run(x, w, y):
    T[4][(1,)](x, y, 3, B=4)
""",
    "handed on by *args": """def go(f, *a):
    f[(1,)](*a, 3, B=4)
def run(x, w, y):
    go(k, x, y)
""",
    "a grid that is a function": """def run(x, w, y):
    grid = lambda m: (triton.cdiv(x.numel(), m['B']),)
    k[grid](x, y, x.numel(), B=4)
""",
    "autotuned": """kk = triton.autotune(configs=[triton.Config({'B': 4})], key=['n'])(k)
def run(x, w, y):
    kk[(1,)](x, y, 3)
""",
    "a class that launches": """class K:
    def __call__(self, x, y):
        k[(1,)](x, y, 3, B=4)
it = K()
def run(x, w, y):
    it(x, y)
""",
    "a closure that launches": """def make():
    def call(x, y):
        k[(1,)](x, y, 3, B=4)
    return call
call = make()
def run(x, w, y):
    call(x, y)
""",
    "tensor descriptors": """from triton.tools.tensor_descriptor import TensorDescriptor
def run(x, w, y):
    d = TensorDescriptor.from_tensor(y, [4, 4])
    k[(1,)](x, d, 3, B=4)
""",
    "in place on a copy": """def run(x, w, y):
    y.copy_(x)
    k[(1,)](y, y, 3, B=4)
""",
    "casts": """def run(x, w, y):
    h = x.to(torch.bfloat16)
    t = torch.empty_like(h)
    k[(1,)](h, t, 3, B=4)
    y.copy_(t.float())
""",
    "its own output where the given one does not fit": """def run(x, w, y):
    out = y if y.is_contiguous() else torch.empty_like(y)
    k[(1,)](x, out, 3, B=4)
    if out is not y:
        y.copy_(out)
""",
    "plain numbers": """def run(x, w, y):
    s = 1.0 / x.shape[-1] ** 0.5
    k[(1,)](x, y, s, B=4)
""",
    "a small sum that the kernel does not need": """def run(x, w, y):
    a = w.abs().max()
    k[(1,)](x, y, 3, B=4)
""",
    "try around something else": """def pick(n):
    try:
        return triton.next_power_of_2(n)
    except ValueError:
        return n * 2
def run(x, w, y):
    k[(1,)](x, y, pick(x.shape[0]), B=4)
""",
}

CUDA = {
    "cuBLAS": ("library-call", "__global__ void k(float*); void f() { k<<<1, 1>>>(0); cublasSgemm(h); }"),
    "at::mm": ("library-call", "__global__ void k(float*); void f() { k<<<1, 1>>>(0); at::mm(a, b); }"),
    "a method": (
        "library-call",
        "__global__ void k(float*); torch::Tensor f(torch::Tensor a) { k<<<1, 1>>>(0); return a.matmul(a); }",
    ),
    "no kernel": ("decoy-kernel", "void run(float* x) { cudaMemcpy(x, x, 1, cudaMemcpyDefault); }"),
    "never launched": ("decoy-kernel", "__global__ void k(float*); void run(float* x) {}"),
    "a carve-out": (
        "l2-persistence",
        "__global__ void k(); void f() { cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1); k<<<1, 1>>>(); }",
    ),
    "a carve-out by number": (
        "l2-persistence",
        "__global__ void k(); void f() { cudaDeviceSetLimit((cudaLimit)6, 1); k<<<1, 1>>>(); }",
    ),
}
CUDA_HONEST = {
    "plain": "__global__ void k(float* x); void run(float* x) { k<<<1, 1>>>(x); }",
    "a template": "template <int N> __global__ void k(float* x) {} void run(float* x) { k<4><<<1, 1>>>(x); }",
    "by cudaLaunchKernel": "__global__ void k(float* x) {} void run(void** a) { cudaLaunchKernel((void*)k, 1, 1, a, 0, 0); }",
    "scratch by torch": "__global__ void k(float* x) {} void run(at::Tensor x) { k<<<1, 1>>>(at::empty({4}).data_ptr<float>()); }",
    "words": "// cublasSgemm, at::mm\n__global__ void k(float* x) {} void run(float* x) { k<<<1, 1>>>(x); }",
    "a stack limit": "__global__ void k(); void f() { cudaDeviceSetLimit(cudaLimitStackSize, 4096); k<<<1, 1>>>(); }",
}


def blocked(text: str, backend: str = "triton") -> set[str]:
    name = "kernel.cu" if backend == "cuda" else "kernel.py"
    return {f.rule for f in scan(CandidateSource(backend=backend, files={name: text})) if f.severity == "block"}


@pytest.mark.parametrize("name", CHEATS)
def test_a_library_in_the_kernels_place_is_blocked(name: str):
    rule, text = CHEATS[name]
    assert rule in blocked(HEAD + text)


@pytest.mark.parametrize("name", HONEST)
def test_ordinary_host_code_passes(name: str):
    assert blocked(HEAD + HONEST[name]) == set()


def test_a_kernel_language_without_a_kernel_is_blocked():
    assert blocked("import triton.language as tl\n\ndef run(x, y):\n    y.copy_(x)\n") == {"decoy-kernel"}


@pytest.mark.parametrize("name", CUDA)
def test_a_library_in_a_cuda_source_is_blocked(name: str):
    rule, text = CUDA[name]
    assert rule in blocked(text, "cuda")


@pytest.mark.parametrize("name", CUDA_HONEST)
def test_ordinary_cuda_passes(name: str):
    assert blocked(CUDA_HONEST[name], "cuda") == set()


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*/start/*.py")), ids=lambda p: p.parent.parent.name)
def test_no_bundled_kernel_is_blocked(path: Path):
    outputs = len(load_problem(read_folder(path.parent.parent)).outputs)
    assert [f for f in scan(load_candidate(path), outputs) if f.severity == "block"] == []


STATIC = [e for e in redteam.entries() if e.static]


@pytest.mark.parametrize("entry", STATIC, ids=lambda e: e.name)
def test_what_the_table_says_is_seen_by_reading_is_seen(entry: redteam.Entry):
    found = scan(load_candidate(entry.path, entry.backend))
    assert entry.static in {f.rule for f in found if f.severity == "block"}


@needs_sandbox
@pytest.mark.slow
def test_an_honest_triton_kernel_is_right_without_a_gpu_and_nothing_blocks():
    """Interpreted; with its kernels emptied, and with kernels that fail, its output is wrong. Nothing is timed."""
    source = load_candidate(CANDIDATES / "tries_again_interpreted.py")
    found = evaluate(
        EvaluationRequest(
            problem_name="tiny", problem_files=read_folder(HERE / "data" / "tiny"), candidate=source, mode="check"
        )
    )

    assert found.outcome == "measured", found.summary
    assert [f for f in found.findings if f.severity == "block"] == []
    evidence = next(stage.evidence for stage in found.stages if stage.name == "engagement")
    assert evidence["twins"] == ["empty", "failing"]
    assert evidence["right"] == []
