"""Text from outside, so that what is seen is what is there.

Source code can carry characters that turn the reading direction or are not drawn at all ("Trojan Source",
CVE-2021-42574): a reviewer would approve something else than what is compiled. They are written out instead.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]"
)
_TAGS = re.compile("[\U000e0000-\U000e01ef]")


def visible(text: str) -> str:
    """The text with every control, direction and invisible character but tab and newline spelled out as ⟦U+202E⟧."""
    text = text.replace("\r\n", "\n")
    return _TAGS.sub(spell, _HIDDEN.sub(spell, text))


def spell(match: re.Match[str]) -> str:
    return f"⟦U+{ord(match[0]):04X}⟧"


def hidden_characters(text: str) -> dict[str, int]:
    """How often each character that ``visible`` spells out occurs, by name."""
    counts: dict[str, int] = {}
    for match in [*_HIDDEN.finditer(text.replace("\r\n", "\n")), *_TAGS.finditer(text)]:
        name = unicodedata.name(match[0], f"U+{ord(match[0]):04X}")
        counts[name] = counts.get(name, 0) + 1
    return counts


def one_line(text: str, limit: int = 200) -> str:
    """The first words of a text on one line, shortened with an ellipsis."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
