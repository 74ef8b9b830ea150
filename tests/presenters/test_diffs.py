from __future__ import annotations

import html
import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.presenters.diffs import diff_files, diff_text


def text_of(line_html: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", line_html))


def test_a_changed_line_is_removed_and_added_with_its_numbers():
    file = diff_text("kernel.cpp", "int a;\nint b;\n", "int a;\nint c;\n")
    lines = [(line.kind, line.old, line.new, text_of(line.html)) for hunk in file.hunks for line in hunk.lines]
    assert lines == [("context", 1, 1, "int a;"), ("del", 2, None, "int b;"), ("add", None, 2, "int c;")]


def test_side_by_side_sets_removed_beside_added():
    file = diff_text("a.py", "x = 1\ny = 2\n", "x = 3\n")
    assert [(a and text_of(a.html), b and text_of(b.html)) for a, b in file.hunks[0].pairs] == [
        ("x = 1", "x = 3"),
        ("y = 2", None),
    ]


def test_new_gone_and_same_files_are_told_apart():
    states = {
        file.path: file.state
        for file in diff_files({"a": "1\n", "b": "2\n", "c": "3\n"}, {"b": "2\n", "c": "4\n", "d": "5\n"})
    }
    assert states == {"a": "removed", "b": "same", "c": "changed", "d": "added"}


def test_lines_that_look_like_a_patch_are_only_text():
    evil = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-gone\n"
    file = diff_text("kernel.py", "", evil)
    assert file.added == 4
    assert [text_of(line.html) for line in file.hunks[0].lines] == evil.split("\n")[:-1]


def test_only_a_last_newline_that_differs_is_said():
    assert "last newline" in diff_text("a.py", "x", "x\n").note


def test_a_multi_line_comment_stays_coloured_on_each_line():
    file = diff_text("kernel.cpp", "", "/* one\ntwo */\n")
    assert all(line.html.count("<span") == line.html.count("</span>") == 1 for line in file.hunks[0].lines)


def test_a_huge_or_wide_file_does_not_hang_the_page():
    begun = time.perf_counter()
    diff_text("kernel.py", "x\n" * 100_000, "y\n" * 100_000)
    diff_text("kernel.cpp", "", "(" * 500_000)
    diff_text("kernel.py", "\n".join(str(i % 7) for i in range(3000)), "\n".join(str(i % 11) for i in range(3000)))
    assert time.perf_counter() - begun < 20


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=200),
    st.text(max_size=200),
    st.sampled_from(["kernel.cpp", "kernel.py", "x.cu", "y.ptx", "z.unknown"]),
)
def test_any_two_texts_give_escaped_lines_that_add_up(old, new, path):
    file = diff_text(path, old, new)
    for hunk in file.hunks:
        for line in hunk.lines:
            assert not re.search(r"<(?!/?span)", line.html)
            assert "\n" not in line.html
        assert sum(1 for a, b in hunk.pairs for side in {id(a): a, id(b): b}.values() if side) == len(hunk.lines)
