"""Kernel names as a person reads them: without return type, namespaces and arguments, and never mangled.

Profilers write the same kernel as a C++ signature, as a mangled symbol (Itanium C++ ABI, 5.1) or as the bare name that Nsight
Systems shows; Triton before 3.0 appended what a kernel was specialised on (``_0d1d2de``). All of them become the bare name.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SYMBOL = re.compile(r"(?<![\w$.])_Z[\w$.]+")
_SPECIALISED = re.compile(r"_(?=[0-9ec]*d)0(?:de?|[ce])?1(?:de?|[ce])?(?:\d+(?:de?|[ce])?)*$")
MAX_FULL = 400
"""Characters of a full name in a tooltip: CUTLASS writes thousands."""


@lru_cache(maxsize=65536)
def short_name(name: str) -> str:
    """``void at::native::reduce_kernel<512, 1>(Args)`` → ``reduce_kernel``; ``_ZN2at13reduce_kernelILi4EEEvT_`` likewise.

    A name that is neither a C++ signature nor a symbol stays as it is.
    """
    if name.startswith("_Z"):
        return _of_symbol(name)
    if "<" not in name and "::" not in name and "(" not in name:
        return _SPECIALISED.sub("", name) or name
    return _of_signature(name)


def _of_signature(name: str) -> str:
    depth, kept = 0, []
    text = name.replace("(anonymous namespace)", "")
    for at, char in enumerate(text):
        if char == "(" and depth == 0 and not text.startswith("()", at):
            break
        if char in "<({":
            depth += 1
        elif char in ">)}" and not (char == ">" and text[at - 1 : at] == "-"):
            depth -= 1
        elif depth == 0:
            kept.append(char)
        if depth < 0:
            return name
    words = "".join(kept).strip()
    if depth != 0 and "(" not in text:
        return name
    last = words.split(" ")[-1].rsplit("::", 1)[-1]
    return last or name


def _of_symbol(symbol: str) -> str:
    """The last of the identifiers before template arguments or parameters; the symbol itself where it is built otherwise."""
    rest = re.sub(r"^(?:N[rVK]*[RO]?)?(?:St|S[0-9A-Z]*_)?L?", "", symbol[2:])
    found = ""
    while number := re.match(r"[1-9]\d{0,3}", rest):
        begin = number.end()
        end = begin + int(number.group())
        if end > len(rest) or not re.fullmatch(r"[A-Za-z_$.][\w$.]*", rest[begin:end]):
            break
        found, rest = rest[begin:end], rest[end:]
    return found or symbol


def unmangled(name: str) -> str:
    """The bare name of a mangled symbol; any other name as it is."""
    return _of_symbol(name) if name.startswith("_Z") else name


def readable(text: str) -> str:
    """A sentence in which each mangled symbol is its bare name."""
    return _SYMBOL.sub(lambda symbol: _of_symbol(symbol.group()), text)


def full_name(name: str, full: str) -> str:
    """What a tooltip adds to a bare name; empty where it adds nothing."""
    if full == name:
        return ""
    return full if len(full) <= MAX_FULL else full[: MAX_FULL - 1] + "…"
