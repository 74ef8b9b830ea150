from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import catalog
from campaigns.harness.candidate import with_values
from campaigns.harness.request import CandidateSource
from campaigns.memory.canonical import canonical_sha256, structure_sha256

CPP = Path(catalog.find("mla_decode") / "start" / "kernel.cpp").read_text()
PY = '''"""A kernel."""
import torch
import triton
import triton.language as tl

BLOCK = 128  # tunable: 64, 128, 256


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Doubles."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, value * 2.0, mask=at < n)


def helper(n):
    value = n + BLOCK - 1
    return value // BLOCK


def run(x, y):
    kernel[(helper(x.numel()),)](x, y, x.numel(), BLOCK=BLOCK)
'''


def cpp(text: str) -> CandidateSource:
    return CandidateSource(backend="cpp", files={"kernel.cpp": text})


def py(text: str) -> CandidateSource:
    return CandidateSource(backend="triton", files={"kernel.py": text})


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


SAME_CPP = {
    "comments": replaced(CPP, ("// scores[h][t]", "// something else: scores[h][t]")),
    "layout": replaced(CPP, ("    ", "\t"), (") {", ")\n{"), (";\n", ";\n\n")),
    "a function's name": CPP.replace("accumulate", "sum_up"),
    "a local name": CPP.replace("largest", "biggest"),
    "a name in one function only": CPP.replace(
        CPP.split("static void accumulate")[1].split("template")[0],
        CPP.split("static void accumulate")[1].split("template")[0].replace("tokens", "rows").replace("sum", "acc"),
    ),
    "a vector's name": CPP.replace("piece", "block"),
    "a second name in one declaration": CPP.replace("best(heads)", "best(heads)"),
    "hexadecimal": CPP.replace("int WIDTH = 576", "int WIDTH = 0x240"),
    "digits apart": CPP.replace("= 1024; ", "= 1'024; "),
    "a float's zeros": CPP.replace("192.0f", "192.00f"),
}
OTHER_CPP = {
    "a parameter": with_values(cpp(CPP), {"CHUNK": 256}).files["kernel.cpp"],
    "an operator": replaced(CPP, ("t + TOKEN_TILE <= count", "t + TOKEN_TILE < count")),
    "a library function": CPP.replace("std::max", "std::min"),
    "two names swapped": replaced(CPP, ("q[h * WIDTH + i + l] * token[i + l]", "q[i + l] * token[h * WIDTH + i + l]")),
    "a constant": CPP.replace("192.0f", "193.0f"),
    "a pragma": CPP.replace("    int64_t t = 0;", "#pragma GCC ivdep\n    int64_t t = 0;"),
}
SAME_PY = {
    "comments": PY.replace("@triton.jit", "# a comment\n@triton.jit"),
    "layout": PY.replace("mask=at < n, other=0.0", "\n        mask=at < n,\n        other=0.0,\n"),
    "docstrings": replaced(PY, ('    """Doubles."""\n', ""), ('"""A kernel."""\n', "'''Another.'''\n")),
    "a function's name": PY.replace("helper", "grid_of"),
    "local names": replaced(PY, ("value = tl.load", "loaded = tl.load"), ("value * 2.0", "loaded * 2.0")),
    "a local name in another function": replaced(PY, ("value = n +", "up = n +"), ("return value", "return up")),
    "a parameter that is named in calls": PY.replace("BLOCK: tl.constexpr", "SIZE: tl.constexpr")
    .replace("* BLOCK + tl.arange(0, BLOCK)", "* SIZE + tl.arange(0, SIZE)")
    .replace("BLOCK=BLOCK)", "SIZE=BLOCK)"),
    "an import's name": PY.replace("import triton.language as tl", "from triton import language as T").replace(
        "tl.", "T."
    ),
    "an import that nobody needs": PY.replace("import torch\n", "import torch\nimport math\n"),
    "digits": PY.replace("2.0", "2.00"),
}
OTHER_PY = {
    "a parameter": with_values(py(PY), {"BLOCK": 64}).files["kernel.py"],
    "a library function": PY.replace("tl.load", "tl.atomic_add"),
    "a keyword of another's": PY.replace("other=0.0", "other=1.0"),
    "an operator": PY.replace("value * 2.0", "value + 2.0"),
    "a decorator": PY.replace("@triton.jit", "@triton.jit(noinline=True)"),
    "two arguments swapped": PY.replace("](x, y, x.numel()", "](y, x, x.numel()"),
}


@pytest.mark.parametrize("what", SAME_CPP)
def test_the_same_cpp_program_in_other_words(what):
    assert canonical_sha256(cpp(SAME_CPP[what])) == canonical_sha256(cpp(CPP))


@pytest.mark.parametrize("what", OTHER_CPP)
def test_another_cpp_program(what):
    assert OTHER_CPP[what] != CPP
    assert canonical_sha256(cpp(OTHER_CPP[what])) != canonical_sha256(cpp(CPP))


@pytest.mark.parametrize("what", SAME_PY)
def test_the_same_python_program_in_other_words(what):
    assert canonical_sha256(py(SAME_PY[what])) == canonical_sha256(py(PY))


@pytest.mark.parametrize("what", OTHER_PY)
def test_another_python_program(what):
    assert OTHER_PY[what] != PY
    assert canonical_sha256(py(OTHER_PY[what])) != canonical_sha256(py(PY))


def test_points_of_one_program_have_one_structure():
    other = with_values(cpp(CPP), {"CHUNK": 256, "LANES": 8})
    assert structure_sha256(other) == structure_sha256(cpp(CPP))
    assert structure_sha256(cpp(OTHER_CPP["an operator"])) != structure_sha256(cpp(CPP))


def test_a_comparison_is_no_declaration():
    one = "int f(int a, int b, int c) { bool x = a > b; return x ? b : c; }"
    two = "int f(int a, int b, int c) { bool x = a > c; return x ? b : c; }"
    three = "int f(int a, int b, int c) { int x = a * b; return x; }"
    four = "int f(int a, int b, int c) { int x = a * c; return x; }"
    assert len({canonical_sha256(cpp(text)) for text in (one, two, three, four)}) == 4


def test_the_entry_file_may_have_any_name_and_other_files_may_not():
    one = CandidateSource(backend="cpp", files={"17.cpp": CPP})
    assert canonical_sha256(one) == canonical_sha256(cpp(CPP))
    header = CandidateSource(backend="cpp", files={"kernel.cpp": CPP, "a.h": "int a();"})
    other = CandidateSource(backend="cpp", files={"kernel.cpp": CPP, "b.h": "int a();"})
    assert canonical_sha256(header) != canonical_sha256(other)


def test_backends_are_told_apart():
    assert canonical_sha256(CandidateSource(backend="torch", files={"kernel.py": PY})) != canonical_sha256(py(PY))


@pytest.mark.parametrize("text", ["def run(:", "\0", "x = " + "(" * 500, "", "x = '\ud800'"])
def test_what_cannot_be_parsed_still_has_a_hash(text):
    assert len(canonical_sha256(py(text.encode("utf-8", "ignore").decode()))) == 64


@pytest.mark.parametrize("name", catalog.all())
def test_every_start_kernel_is_the_same_as_itself_and_as_no_other(name):
    texts = [p.read_text() for p in sorted((catalog.find(name) / "start").iterdir()) if p.is_file()]
    hashes = {canonical_sha256(CandidateSource(backend="x", files={"k": t})) for t in texts}
    assert len(hashes) == len(set(texts))
