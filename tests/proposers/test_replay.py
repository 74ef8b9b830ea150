from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.harness.request import CandidateSource
from campaigns.proposers.base import Exhausted, PastAttempt, Proposal, ProposerError, Task
from campaigns.proposers.registry import make

START = CandidateSource(backend="cpp", files={"kernel.cpp": "int x;"})


def task(*offered: Proposal) -> Task:
    attempts = tuple(
        PastAttempt(number=n, verdict="reverted", candidate=p.candidate, parameters=p.parameters)
        for n, p in enumerate(offered, 1)
    )
    return Task(problem="p", backend="cpp", incumbent=START, start=START, attempts=attempts, number=len(attempts) + 1)


def walk(folder: Path) -> list[Proposal]:
    offered: list[Proposal] = []
    while True:
        try:
            offered.append(make("replay", {"directory": str(folder)}).propose(task(*offered)))
        except Exhausted:
            return offered


def test_candidates_come_in_natural_order_and_then_it_is_exhausted(tmp_path):
    for name in ("10.cpp", "2.cpp", "1.cpp"):
        (tmp_path / name).write_text(f"int n_{name[:-4]};")
    assert [p.parameters["entry"] for p in walk(tmp_path)] == ["1.cpp", "2.cpp", "10.cpp"]


def test_a_sub_folder_is_one_candidate_with_all_its_files(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "kernel.cpp").write_text('#include "part.h"\n')
    (folder / "part.h").write_text("// a part\n")
    (proposal,) = walk(tmp_path)
    assert set(proposal.candidate.files) == {"kernel.cpp", "part.h"}
    assert proposal.candidate.backend == "cpp"


def test_the_backend_is_that_of_the_file(tmp_path):
    (tmp_path / "1.py").write_text("import triton\nimport triton.language as tl\n")
    (tmp_path / "2.py").write_text("import torch\n")
    assert [p.candidate.backend for p in walk(tmp_path)] == ["triton", "torch"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("// Reads the cache once\nint x;", "Reads the cache once"),
        ("/* Two heads at a time */\nint x;", "Two heads at a time"),
        ("#include <cmath>\nint x;", "1.cpp"),
        ("int x;", "1.cpp"),
        ("//\nint x;", "1.cpp"),
        ("// \x1b[31mred\x07\nint x;", "[31mred"),
    ],
)
def test_the_title_is_the_leading_comment_or_else_the_name(tmp_path, text, title):
    (tmp_path / "1.cpp").write_text(text)
    assert walk(tmp_path)[0].title == title


def test_a_docstring_is_a_title_too(tmp_path):
    (tmp_path / "1.py").write_text('"""Softmax in one walk."""\n')
    assert walk(tmp_path)[0].title == "Softmax in one walk."


def test_other_files_are_passed_over(tmp_path):
    (tmp_path / "1.cpp").write_text("int x;")
    for name in ("README.md", ".hidden.cpp", "notes.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "__pycache__").mkdir()
    assert len(walk(tmp_path)) == 1


def test_fifty_copies_of_one_kernel_are_fifty_candidates(tmp_path):
    for n in range(50):
        (tmp_path / f"{n}.cpp").write_text("// the same\nint x;")
    assert len(walk(tmp_path)) == 50


def test_what_cannot_be_read_is_told_before_the_first_candidate(tmp_path):
    (tmp_path / "1.cpp").write_text("int x;")
    (tmp_path / "2.cpp").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProposerError, match=r"2\.cpp cannot be read: .*UTF-8") as caught:
        walk(tmp_path)
    assert not caught.value.retryable


def test_an_empty_sub_folder_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProposerError, match=r"empty cannot be read: .*no source file"):
        walk(tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret.cpp").write_text("int secret;")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "1.cpp").symlink_to(tmp_path / "secret.cpp")
    with pytest.raises(ProposerError, match="a link out of the replay folder"):
        walk(folder)


def test_a_missing_folder_an_empty_folder_and_no_folder_are_clear_errors(tmp_path):
    with pytest.raises(ProposerError, match="No such file"):
        walk(tmp_path / "none")
    with pytest.raises(ProposerError, match="no candidate in it"):
        walk(tmp_path)
    with pytest.raises(ProposerError, match="option `directory`"):
        make("replay")
