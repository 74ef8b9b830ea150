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
UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
WORD = re.compile(r"[^\W\d]\w*")
LOOKALIKE = ("CYRILLIC", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "COPTIC")
"""Scripts with letters that look like Latin ones. Greek is what mathematics is written in."""


def scan_text(path: str, text: str) -> Iterator[Finding]:
    """At most one finding of each kind."""
    if path.endswith(".py") and (name := declared_encoding(text)):
        words = f"declares its encoding as {name}: Python runs another text than the one that is shown"
        yield Finding(rule="hidden-source", severity="block", evidence=words, path=path, line=1)
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
