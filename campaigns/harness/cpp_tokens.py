"""C++ and CUDA source as tokens: enough to tell code from comments and strings. No preprocessor."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?(?:\)(?P=delim)"|\Z))
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    |(?P<number>\.?\d(?:[eEpP][+-]|['.\w])*)
    |(?P<name>[A-Za-z_$]\w*)
    |(?P<space>\s+)
    |(?P<op>::|->\*?|\#\#|<<=|>>=|<=>|\.\.\.|[-+*/%&|^=<>!]=|\+\+|--|&&|\|\||<<|>>|<:|:>|<%|%>|%:|.)""",
    re.VERBOSE | re.DOTALL,
)
_SPLICE = re.compile(r"\\[ \t\f\v]*\n")
"""A line that goes on in the next one; GCC lets blanks stand behind the backslash."""


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def tokens(text: str) -> Iterator[Token]:
    """Every token but comments and white space, with its line (from 1). A string keeps its quotes.

    Lines are joined first, as a compiler does: a name may be split by a backslash at the end of a line.
    """
    text, splices = _joined(text.replace("\r\n", "\n"))
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup or "op"
        kind = {"delim": "string", "raw": "string"}.get(kind, kind)
        if kind not in ("comment", "space"):
            yield Token(kind, match.group(), line + bisect_left(splices, position + 1))
        line += match.group().count("\n")
        position = match.end()


def _joined(text: str) -> tuple[str, list[int]]:
    """The text without its splices, and where each was."""
    parts, splices, position, length = [], [], 0, 0
    for match in _SPLICE.finditer(text):
        parts.append(text[position : match.start()])
        length += match.start() - position
        splices.append(length)
        position = match.end()
    return "".join([*parts, text[position:]]), splices
