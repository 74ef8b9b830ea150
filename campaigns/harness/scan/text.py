"""Does a person see the source that is run? Characters that turn text round, or look like others; declared encodings."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator

from ..report import Finding

TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Bidirectional controls: what stands behind them is shown elsewhere than it is."""
UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0000-\U000e01ef]"
)
"""Among them letters that Python takes in a name, and a page shows as nothing: the Hangul fillers."""
ENDS_LINES = re.compile("\r(?!\n)|[\v\x1c-\x1e\x85\u2028\u2029]")
"""They end a line for Python, or for a page that shows it, and not for the other: a comment may be code."""
CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f]")
"""A terminal obeys them: they clear what stands before."""
OFF_THE_PAGE = re.compile(r"^[^\n]*\S[ \t]{200,}\S", re.MULTILINE)
"""Code behind so many blanks is not on anybody's screen. Continuation backslashes and comments of tables stand nearer."""
WORD = re.compile(r"[^\W\d]\w*")
LOOKALIKE = ("CYRILLIC", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "COPTIC")
"""Scripts with letters that look like Latin ones. Greek is what mathematics is written in."""


def scan_text(path: str, text: str) -> Iterator[Finding]:
    """At most one finding of each kind."""
    if path.endswith(".py") and (name := declared_encoding(text)):
        words = f"declares its encoding as {name}: Python runs another text than the one that is shown"
        yield Finding(rule="hidden-source", severity="block", evidence=words, path=path, line=1)
    for severity, pattern, words in (
        ("block", ENDS_LINES, "holds characters that end a line for some readers and not for others"),
        ("block", CONTROLS, "holds control characters, which a terminal obeys"),
        ("warning", OFF_THE_PAGE, "goes on behind hundreds of blanks, where nobody looks"),
    ):
        if match := pattern.search(text):
            line = line_of(text, match.start())
            yield Finding(rule="hidden-source", severity=severity, evidence=words, path=path, line=line)  # type: ignore[arg-type]
    if text.isascii():
        return
    for rule, severity, pattern, words in (
        (
            "hidden-source",
            "block",
            TURNS,
            "turns the direction of the text: it is shown in another order than it is run",
        ),
        ("hidden-source", "warning", UNSEEN, "holds characters that are not shown"),
    ):
        if match := pattern.search(text, 1 if pattern is UNSEEN else 0):
            yield Finding(rule=rule, severity=severity, evidence=words, path=path, line=line_of(text, match.start()))  # type: ignore[arg-type]
    for match in WORD.finditer(text):
        word = match.group()
        if not word.isascii() and any(c.isascii() for c in word) and _looks_alike(word):
            words = f"{ascii(word)[1:-1][:80]} mixes Latin letters with ones that look like them"
            yield Finding(
                rule="hidden-source", severity="warning", evidence=words, path=path, line=line_of(text, match.start())
            )
            return


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _looks_alike(word: str) -> bool:
    return any(unicodedata.name(c, "").startswith(LOOKALIKE) for c in word if not c.isascii())


def declared_encoding(text: str) -> str:
    """The encoding that a Python file declares in its first two lines, where it is another than UTF-8."""
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(text.encode(errors="replace")).readline)
    except SyntaxError:
        return "one that is unknown"
    return "" if name in ("utf-8", "utf-8-sig") else name
