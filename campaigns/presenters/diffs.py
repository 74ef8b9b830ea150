"""A candidate against what it came from, line by line, syntax-coloured, cached.

Built from the two texts themselves (difflib's grouped opcodes), not from a textual patch: a candidate's text can hold
anything, and nothing in it may be read as a patch's own syntax.
"""

from __future__ import annotations

import difflib
import functools
import html
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from .text import hidden_characters, visible

LEXERS = {
    ".py": "python", ".cpp": "cpp", ".cc": "cpp", ".h": "cpp", ".hpp": "cpp",
    ".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".toml": "toml", ".json": "json", ".md": "markdown",
}  # fmt: skip
CONTEXT_LINES = 3
MAX_LINES = 6000
MAX_COLOURED_CHARS = 300_000
MAX_COLOURED_LINE = 2000
"""Above these a text is shown uncoloured, or not compared at all: a page must not hang on a candidate's file."""


@dataclass(frozen=True)
class Line:
    """``kind``: context, add or del. ``html`` is safe: coloured or escaped by us. ``old`` and ``new``: line numbers."""

    kind: str
    html: str
    old: int | None = None
    new: int | None = None

    @property
    def sign(self) -> str:
        return {"add": "+", "del": "−"}.get(self.kind, " ")


@dataclass(frozen=True)
class Hunk:
    old_start: int
    new_start: int
    lines: list[Line]

    @property
    def pairs(self) -> list[tuple[Line | None, Line | None]]:
        """Side by side: removed beside added, in order."""
        rows: list[tuple[Line | None, Line | None]] = []
        removed: list[Line] = []
        added: list[Line] = []
        for line in [*self.lines, Line("context", "")]:
            if line.kind == "context":
                rows += pad(removed, added)
                removed, added = [], []
                rows.append((line, line))
            else:
                (removed if line.kind == "del" else added).append(line)
        return rows[:-1]


@dataclass(frozen=True)
class FileDiff:
    path: str
    state: str
    """changed, added, removed or same."""
    hunks: list[Hunk] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    note: str = ""
    hidden: str = ""
    """Characters in the new text that a reader would not see, spelled out."""


def pad(left: list[Line], right: list[Line]) -> list[tuple[Line | None, Line | None]]:
    longest = max(len(left), len(right))
    fill: list[Line | None] = [None]
    return list(zip([*left, *fill * (longest - len(left))], [*right, *fill * (longest - len(right))], strict=True))


def diff_files(old: dict[str, str], new: dict[str, str]) -> list[FileDiff]:
    """Every file of both sides; those that are the same come last and have no hunks."""
    names = sorted(set(old) | set(new), key=lambda name: (old.get(name) == new.get(name), name))
    return [diff_text(name, old.get(name), new.get(name)) for name in names]


@functools.lru_cache(maxsize=512)
def diff_text(path: str, old: str | None, new: str | None) -> FileDiff:
    if old == new:
        return FileDiff(path, "same")
    state = "added" if old is None else "removed" if new is None else "changed"
    before, after = split(old or ""), split(new or "")
    hidden = ", ".join(f"{name} ×{n}" for name, n in hidden_characters(new or "").items())
    if len(before) + len(after) > 2 * MAX_LINES:
        note = f"{len(before):,} and {len(after):,} lines: too long to compare here."
        return FileDiff(path, state, note=note, hidden=hidden)
    hunks = make_hunks(path, before, after)
    kinds = [line.kind for hunk in hunks for line in hunk.lines]
    note = "" if hunks else "Only the line ends or the last newline differ."
    return FileDiff(path, state, hunks, kinds.count("add"), kinds.count("del"), note, hidden)


def split(text: str) -> list[str]:
    """Lines at newlines only: a form feed or U+2028 is a character of its line, and is shown as one."""
    lines = visible(text).split("\n")
    return lines[:-1] if lines and lines[-1] == "" else lines


def make_hunks(path: str, before: list[str], after: list[str]) -> list[Hunk]:
    left, right = coloured(path, "\n".join(before)), coloured(path, "\n".join(after))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > 2000)
    hunks = []
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        lines: list[Line] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [
                    Line("context", right[j], i + 1, j + 1) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
                ]
                continue
            lines += [Line("del", left[i], old=i + 1) for i in range(i1, i2)]
            lines += [Line("add", right[j], new=j + 1) for j in range(j1, j2)]
        if any(line.kind != "context" for line in lines):
            hunks.append(Hunk(group[0][1] + 1, group[0][3] + 1, lines))
    return hunks


@functools.lru_cache(maxsize=256)
def coloured(path: str, text: str) -> list[str]:
    """Each line as safe HTML. As many lines come back as went in, coloured or only escaped."""
    lines = text.split("\n")
    lexer = lexer_for(path)
    long = len(text) > MAX_COLOURED_CHARS or max(map(len, lines)) > MAX_COLOURED_LINE
    if lexer is None or long:
        return [html.escape(line) for line in lines]
    result = highlight(text, lexer, HtmlFormatter(nowrap=True)).split("\n")[:-1]
    return result if len(result) == len(lines) else [html.escape(line) for line in lines]


def lexer_for(path: str) -> Lexer | None:
    name = LEXERS.get(PurePosixPath(path).suffix)
    return get_lexer_by_name(name, stripnl=False, ensurenl=True) if name else None


def source_lines(path: str, text: str) -> list[str]:
    """A whole file, line by line, as safe HTML."""
    return coloured(path, "\n".join(split(text)))
