from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from campaigns.harness.candidate import load_candidate, normalised_sha256, tunables
from campaigns.harness.request import CandidateSource
from campaigns.harness.scan import scan
from campaigns.harness.scan.linked import scan_linked

BUNDLED = Path(__file__).parents[2] / "campaigns" / "problems"


def blocked(text: str, name: str) -> list[str]:
    found = scan(CandidateSource(backend="cpp" if name.endswith(".cpp") else "torch", files={name: text}))
    return [f"{f.rule}:{f.line}" for f in found if f.severity == "block"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('void f() { system("x"); }', "process:1"),
        ("int fork();\nint f() { return fork(); }", "process:2"),
        ("void f() { std::exit(0); }", "process:1"),
        ("void f() { ::open(0, 0); }", "files:1"),
        ("void f() { auto p = &fopen; }", "files:1"),
        ("void f() { std::ofstream out; }", "files:1"),
        ("void f() { std::thread t(g); }", "threads:1"),
        ("void f() { auto a = std::async(g); }", "threads:1"),
        ("void f() {\n#pragma omp parallel for\n}", "threads:2"),
        ("void f() { socket(2, 1, 0); }", "network:1"),
        ('void f() { dlopen("x", 1); }', "loading:1"),
        ("__attribute__((constructor)) void f() {}", "loading:1"),
        ("[[gnu::constructor]] void f() {}", "loading:1"),
        ('void f() { asm volatile("syscall"); }', "syscall:1"),
        ('asm(".incbin \\"/etc/passwd\\"");', "syscall:1"),
        ('#include "/etc/passwd"', "files:1"),
        ('void f() { PyRun_SimpleString("x"); }', "harness:1"),
        ("void f() { __sysv_signal(18, g); }", "signals:1"),
        ('#include "../../secret"', "files:1"),
        ("int fork();\nint f() { int (*g)() = fork; return g(); }", "process:2"),
        ("int fork();\nint f() { return fo\\\nrk(); }", "process:2"),
        ('void f() { asm("sys" "call"); }', "syscall:1"),
        ('void f() { asm("\\x73yscall"); }', "syscall:1"),
        ('asm(".section .init_array");', "loading:1"),
        ('__attribute__((used, section(".init_array"))) void (*p)() = f;', "loading:1"),
        ('__attribute__((used, visibility("default"), aligned(16), __constructor__)) void f() {}', "loading:1"),
        ("int g(); // \u202e }", "hidden-source:1"),
        ("int g(); // fine\u2028int h();", "hidden-source:1"),
        ("int g(); // \x1b[2K", "hidden-source:1"),
        ('#include "notes.py"', "hidden-source:1"),
        ('%:include "/etc/passwd"', "files:1"),
    ],
)
def test_what_no_kernel_needs_is_blocked_in_cpp(text: str, rule: str):
    assert rule in blocked(text, "kernel.cpp")


@pytest.mark.parametrize(
    "text",
    [
        '// system("x")\n/* fork(); */ const char* s = "std::thread t;";',
        'auto s = R"(system("x"))";',
        "void open(int) { } void f() { open(1); }",
        "struct S { void kill(); int open; }; void f(S s) { s.kill(); s.open = 1; }",
        "float signal[4]; void f() { signal[0] = 1; }",
        "#include <thread>\nvoid f() {}",
        "#pragma omp simd\nvoid f() {}",
        "void f() { mine::exit(1); }",
        "int clone = 3; int g() { return clone + 1; }",
        "static std::vector<float> scratch; void f() { scratch.resize(4); }",
        "constexpr int num_stages = 2;",
        "void f() { std::this_thread::yield(); }",
        'void f() { asm volatile("" ::: "memory"); }',
        "auto g = std::bind(f, 1); // std::bind is no socket's bind",
        "struct C { float alarm; C(float a) : alarm(a) {} };",
        "void f() { auto open = [](int i) { return i; }; open(3); }",
        "bool f(int rows) { const bool signal = rows > 3; return signal; }",
        "__attribute__((hot)) void f() {} // σ² größer",
        "#define APOSTROPHE don't",
        "void f() { auto s = _mm_getcsr(); _mm_setcsr(s | 0x8040); g(); _mm_setcsr(s); }",
        "#define CAT(a, b) a##b\nint CAT(f, 1)(int a) { return a;\f }",
        'void f() { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(1), "r"(2)); }',
    ],
)
def test_ordinary_cpp_passes(text: str):
    assert blocked(text, "kernel.cpp") == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import ctypes", "native:1"),
        ("from subprocess import run as r", "process:1"),
        ("import os as o\no.system('x')", "process:2"),
        ("from os import system", "process:1"),
        ("import threading", "threads:1"),
        ("import torch\ntorch.set_num_threads(4)", "threads:2"),
        ("import urllib.request", "network:1"),
        ("open('x')", "files:1"),
        ("import torch\ntorch.save(1, 'x')", "files:2"),
        ("import gc", "frames:1"),
        ("import sys\nsys._getframe()", "frames:2"),
        ("def run(x):\n    x.__class__.__subclasses__()", "frames:2"),
        ("eval('1')", "loading:1"),
        ("from torch.utils.cpp_extension import load_inline", "loading:1"),
        ("import torch\ntorch.cuda.synchronize = print", "patching:2"),
        ("import time\ntime.perf_counter = lambda: 0", "patching:2"),
        ("import torch\nsetattr(torch, 'mm', print)", "patching:2"),
        ("import torch\ns = torch.cuda.Stream()", "streams:2"),
        ("kept = {}\ndef run(x, y):\n    kept[x.data_ptr()] = 1", "state-by-identity:3"),
        ("def run(x, y, kept={}):\n    kept[id(x)] = 1", "state-by-identity:2"),
        ("f = eval", "loading:1"),
        ("def run(e):\n    return getattr(e, '__trace' + 'back__')", "frames:2"),
        ("import runpy", "loading:1"),
        ("import torch\ntorch.set_default_dtype(torch.float64)", "global-state:2"),
        ("import atexit", "signals:1"),
        ("import os\ns = getattr(os, 'sys')", "module:2"),
        ("import torch\ns = getattr(torch, ''.join(['se', 't_num_threads']))(4)", "threads:2"),
        ("import torch\ntorch.library.Library('aten', 'IMPL')", "patching:2"),
        ("import torch\ntorch.library.impl('aten::mul', 'CPU')(f)", "patching:2"),
        ("# coding: utf-7\n# +AAo-import ctypes", "hidden-source:1"),
        ("# coding: utf-7\n# +AAo-import ctypes", "native:3"),
    ],
)
def test_what_no_kernel_needs_is_blocked_in_python(text: str, rule: str):
    assert rule in blocked(text, "kernel.py")


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import triton\nexcept ImportError:\n    triton = None",
        "def run(x, y):\n    pass",
        "num_stages = 2\ntime = 3\nopen_rows = 4",
        '"""eval(), open(), subprocess and ctypes are words."""\n# import gc',
        "import torch\n\nbuffers = {}\n\ndef run(x, y):\n    buffers.setdefault(x.shape, torch.empty_like(x))",
        "import torch\ntorch.backends.cuda.matmul.allow_tf32 = False",
        "class A:\n    def open(self): ...\n\ndef run(x, y):\n    A().open()",
        "import torch\n\n@torch.compile\ndef f(x):\n    return x",
        "def compile(x):\n    return x\n\ncompile(1)",
        "import time\nimport os\nSIZE = int(os.environ.get('SIZE', '1'))",
        "kept = {}\ndef run(x, y):\n    kept[x.shape] = x.data_ptr() % 16 == 0",
        "if __name__ == '__main__':\n    import subprocess, sys\n    open('x')\n    sys.exit(1)",
        "import torch\nwith torch.no_grad():\n    pass",
        "import operator\nσ2 = operator.mul(2, 3)",
    ],
)
def test_ordinary_python_passes(text: str):
    assert blocked(text, "kernel.py") == []


def test_state_by_shape_is_a_warning():
    text = "kept = {}\ndef run(x, y):\n    kept[x.shape] = 1"
    found = scan(CandidateSource(backend="torch", files={"kernel.py": text}))

    assert [(f.rule, f.severity, f.line) for f in found] == [("state", "warning", 3)]


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*/start/*")), ids=lambda p: f"{p.parent.parent.name}-{p.name}")
def test_no_bundled_start_kernel_is_blocked(path: Path):
    assert [f for f in scan(load_candidate(path)) if f.severity == "block"] == []


def test_source_that_does_not_parse_breaks_nothing():
    assert blocked("def f(:\n", "kernel.py") == []
    assert blocked('"unclosed \'x R"(', "kernel.cpp") == []


@pytest.mark.parametrize(
    "line", ["int a(", "asm(", 'R"(', 'R"abc(', "a = 1" + " " * 1900 + "x // tunable:", "/*", "'\\\\"]
)
def test_no_text_takes_more_time_than_its_length(line: str):
    source = CandidateSource(backend="cpp", files={"kernel.cpp": f"{line}\n" * 20_000})

    assert len(scan(source)) <= 50
    assert tunables(source) == []
    assert normalised_sha256(source)


def test_reading_ends_whatever_the_source():
    """Chains against the order of the lines, calls that branch, deep nesting: each took minutes or an exception once."""
    head = "import triton\n@triton.jit\ndef k(x): pass\ndef f(t):\n" + "    f(t)\n" * 300
    chain = "".join(f"    a{i} = a{i - 1}\n" for i in range(1500, 0, -1))
    run = "def run(x, y):\n    try:\n        f(x)\n    except Exception:\n        f(y)\n    y.copy_(f(x))\n"
    source = CandidateSource(backend="triton", files={"kernel.py": f"{head}{run}{chain}    k[(1,)](x, y)\n"})

    assert [f for f in scan(source) if f.rule == "unreadable"] == []
    huge = CandidateSource(backend="torch", files={f"{i}.py": "x = 1\n" * 100_000 for i in range(4)})
    assert [(f.rule, f.severity) for f in scan(huge)] == [("unreadable", "block")]


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        ({"kernel.cpp": "int f();", "tools.py": "import subprocess"}, []),  # nobody runs it
        ({"kernel.cpp": '#include "a.inc"', "a.inc": "void f() { fork(); }"}, ["process"]),
    ],
)
def test_beside_compiled_sources_what_is_compiled_is_read(files: dict[str, str], rules: list[str]):
    found = scan(CandidateSource(backend="cpp", files=files))
    assert [f.rule for f in found if f.severity == "block"] == rules


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('#define J(a, b) a##b\nextern "C" int J(fo, rk)(); extern "C" int run() { return J(fo, rk)(); }', "fork"),
        ('int go() __asm__("PyGILState_Ensure"); extern "C" int run() { return go(); }', "PyGILState_Ensure"),
        ("#include <thread>\nusing std::thread; extern \"C\" void run() { thread t([] {}); t.join(); }", "_ZNSt6thread"),
        ('extern "C" void* fopen64(const char*, const char*); extern "C" void* run() { return fopen64("a", "r"); }', "fopen64"),
        ('extern "C" char _PyRuntime; extern "C" char* run() { return &_PyRuntime; }', "_PyRuntime"),
        ("#include <cmath>\n#include <cstdio>\n#include <map>\n#include <mutex>\nstatic std::map<int, float> m; std::mutex k;\n"
         'extern "C" void run(float x) { std::lock_guard g(k); std::printf("%f", m[1] = std::exp(x)); }', ""),
    ],
)  # fmt: skip
def test_a_built_library_is_asked_for_the_true_names(text: str, name: str, tmp_path: Path):
    source, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    source.write_text(text)
    subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-shared", "-o", library, source], check=True)

    found = scan_linked(library.read_bytes())

    assert bool(found) == bool(name)
    assert all(name in f.evidence for f in found[:1])


@pytest.mark.parametrize("library", [b"", b"\x7fELF\x02\x01" + bytes(58), b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_a_library_that_cannot_be_read_is_blocked(library: bytes):
    assert [(f.rule, f.severity) for f in scan_linked(library)] == [("unreadable", "block")]


CUDA = "__global__ void k() { }\nvoid run() { k<<<1, 1>>>(); HERE }"


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("int a = cudaLaunchAttributeProgrammaticStreamSerialization;", ["streams"]),
        ("int a = cudaLaunchAttributeProgrammaticStreamSerialization; cudaGridDependencySynchronize();", []),
        ('int a = cudaLaunchAttributeProgrammaticStreamSerialization; asm("griddepcontrol.wait;");', []),
        ('cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, 0);', []),
        ('cudaGetDriverEntryPoint("cuCtxCreate", &f, 0);', ["loading"]),
        ("cuCtxCreate(&c, 0, 0);", ["global-state"]),
    ],
)
def test_what_a_launch_does_not_wait_for_and_what_a_driver_is_asked_for(code: str, rules: list[str]):
    found = scan(CandidateSource(backend="cuda", files={"kernel.cu": CUDA.replace("HERE", code)}))
    assert [f.rule for f in found if f.severity == "block"] == rules


@pytest.mark.parametrize(("wait", "rules"), [("", ["streams"]), ("    tl.extra.cuda.gdc_wait()\n", [])])
def test_an_early_launch_in_triton_needs_a_wait(wait: str, rules: list[str]):
    text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y):\n"
    text += f"{wait}    tl.store(y, tl.load(x) * 2)\ndef run(x, y):\n    k[(1,)](x, y, launch_pdl=True)\n"
    found = scan(CandidateSource(backend="triton", files={"kernel.py": text}))
    assert [f.rule for f in found if f.severity == "block"] == rules
