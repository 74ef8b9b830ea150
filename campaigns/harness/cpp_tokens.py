"""C++ and CUDA source as tokens: enough to tell code from comments and strings. No preprocessor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?(?:\)(?P=delim)"|\Z))
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    |(?P<number>\.?\d(?:[eEpP][+-]|['.\w])*)
    |(?P<name>[A-Za-z_$]\w*)
    |(?P<splice>\\\n)
    |(?P<space>\s+)
    |(?P<op>::|->\*?|\#\#|<<=|>>=|<=>|\.\.\.|[-+*/%&|^=<>!]=|\+\+|--|&&|\|\||<<|>>|<:|:>|<%|%>|%:|.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def tokens(text: str) -> Iterator[Token]:
    """Every token but comments and white space, with its line (from 1). A string keeps its quotes."""
    text = text.replace("\r\n", "\n")
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup or "op"
        kind = {"delim": "string", "raw": "string"}.get(kind, kind)
        if kind not in ("comment", "space", "splice"):
            yield Token(kind, match.group(), line)
        line += match.group().count("\n")
        position = match.end()
