from __future__ import annotations

import pytest

from campaigns.harness import candidate
from campaigns.harness.errors import CandidateError
from campaigns.harness.request import CandidateSource

from .conftest import CENTRE, named


def source(text: str, name: str = "kernel.cpp", backend: str = "cpp") -> CandidateSource:
    return CandidateSource(backend=backend, files={name: text})


@pytest.mark.parametrize(
    ("name", "text", "backend"),
    [
        ("a.cpp", "", "cpp"),
        ("a.cu", "", "cuda"),
        ("a.py", "import torch\n", "torch"),
        ("a.py", "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(): ...\n", "triton"),
        ("a.py", "try:\n    import triton\nexcept ImportError:\n    pass\n", "torch"),
        ("a.py", "# import triton.language\nimport torch\n", "triton"),
    ],
)
def test_the_backend_is_told_from_the_files(tmp_path, name: str, text: str, backend: str):
    (tmp_path / name).write_text(text)

    assert candidate.load_candidate(tmp_path / name).backend == backend
    assert candidate.load_candidate(tmp_path).backend == backend


def test_what_is_no_candidate_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "b.cpp").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(CandidateError, match="no such file"):
        candidate.load_candidate(tmp_path / "lost")
    with pytest.raises(CandidateError, match="not UTF-8"):
        candidate.load_candidate(tmp_path / "b.cpp")
    with pytest.raises(CandidateError, match="unknown backend"):
        candidate.load_candidate(CENTRE / "start" / "kernel.cpp", "fortran")


@pytest.mark.parametrize("path", ["/etc/kernel.cpp", "../kernel.cpp", "a/../../kernel.cpp"])
def test_paths_stay_in_their_folder(path: str):
    with pytest.raises(CandidateError, match="stays in its folder"):
        candidate.entry_path(source("", path))


def test_tunables_are_read_and_rewritten_and_nothing_else_changes():
    text = "constexpr int A = 4;  // tunable: 2, 4\nint b = 4;\nconstexpr float C = 0.5f; // tunable: 0.5f, 1.0f\n"

    tuned = candidate.with_values(source(text), {"A": 2, "C": "1.0f"})

    assert [(t.name, t.value, t.choices, t.line) for t in candidate.tunables(source(text))] == [
        ("A", "4", ["2", "4"], 1),
        ("C", "0.5f", ["0.5f", "1.0f"], 3),
    ]
    assert tuned.files["kernel.cpp"] == text.replace("A = 4", "A = 2").replace("C = 0.5f", "C = 1.0f")


def test_python_tunables_are_the_same():
    text = "BLOCK = 128  # tunable: 64, 128\nSTAGES: int = 2  # tunable: 1, 2\n"

    tuned = candidate.with_values(source(text, "kernel.py", "torch"), {"BLOCK": 64})

    assert tuned.files["kernel.py"] == text.replace("128  #", "64  #")


def test_a_value_outside_its_choices_is_refused():
    with pytest.raises(CandidateError, match="not among its choices"):
        candidate.tunables(source("int A = 3;  // tunable: 2, 4\n"))
    with pytest.raises(CandidateError, match="not among its choices"):
        candidate.with_values(source("int A = 2;  // tunable: 2, 4\n"), {"A": 3})
    with pytest.raises(CandidateError, match="no tunable 'B'"):
        candidate.with_values(source("int A = 2;  // tunable: 2, 4\n"), {"B": 3})


def test_comments_and_white_space_make_no_other_program():
    a, b = source("int f() { return 1; } // one\n"), source("/* two */ int f()\n{\n  return 1;\n}\n")

    assert candidate.normalised_sha256(a) == candidate.normalised_sha256(b)
    assert candidate.sha256(a) != candidate.sha256(b)
    assert candidate.normalised_sha256(a) != candidate.normalised_sha256(source("int f() { return 2; }"))


def test_in_python_indentation_is_part_of_the_program():
    a = source("if a:\n    b()\nc()\n", "kernel.py", "torch")
    b = source("if a:\n    b()\n    c()\n", "kernel.py", "torch")
    c = source("# why\nif a:\n  b()  # so\n\nc()\n", "kernel.py", "torch")

    assert candidate.normalised_sha256(a) != candidate.normalised_sha256(b)
    assert candidate.normalised_sha256(a) == candidate.normalised_sha256(c)


def test_a_string_that_looks_like_a_comment_is_program():
    a, b = source('auto s = "// a";'), source('auto s = "// b";')

    assert candidate.normalised_sha256(a) != candidate.normalised_sha256(b)


def test_a_file_under_any_name_is_the_entry():
    assert candidate.entry_path(named("faster.cpp")) == "faster.cpp"


def test_more_files_than_a_sandbox_takes_are_refused():
    files = {"kernel.cpp": "", **{f"{n}.h": "" for n in range(3000)}}

    with pytest.raises(CandidateError, match="at most 256"):
        candidate.entry_path(CandidateSource(backend="cpp", files=files))
