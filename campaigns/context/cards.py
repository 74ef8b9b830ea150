"""Context cards: Markdown files that tell an agent about the hardware, the model and the language.

They lie in three places, the later ones covering the earlier: bundled beside this file, in the team's own folder
(``$AUTORESEARCH_HOME/context``), and in the database where somebody edited them in the browser (``library``). A card
begins with a head between two lines ``---``: ``title``, and ``match``, a regular expression that says where it belongs
(a hardware card on the hardware kind, a dsl card on the backend, a model card on what the problem says of itself).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

BUNDLED = Path(__file__).resolve().parent
KINDS = ("hardware", "models", "dsl", "rules")
MAX_BYTES = 256 << 10
_NAME = re.compile(r"(?:hardware|models|dsl|rules)/[a-z0-9][a-z0-9._-]{0,79}\Z")
_HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\n+")


class CardError(ValueError):
    """A card that cannot be used. The message says which, why, and what to do."""


class CardChanged(CardError):
    """Somebody else was faster."""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One card in one version. ``text`` is the whole file, head included."""

    name: str
    """``kind/slug``, such as ``hardware/h200``."""
    text: str
    origin: str = "bundled"
    """``bundled``, ``team`` (the team's folder), ``edited`` (in the browser) or ``device`` (from a host's report)."""

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def body(self) -> str:
        """The Markdown without its head."""
        return _HEAD.sub("", self.text, count=1).strip()

    @property
    def head(self) -> dict[str, str]:
        found = _HEAD.match(self.text)
        lines = found[1].splitlines() if found else []
        pairs = (line.partition(":") for line in lines if ":" in line)
        return {key.strip(): value.strip() for key, _, value in pairs}

    @property
    def title(self) -> str:
        first = re.search(r"^#\s+(.+)$", self.body, re.MULTILINE)
        return self.head.get("title") or (first[1].strip() if first else self.name)

    @property
    def tokens(self) -> int:
        return tokens_about(self.body)

    def belongs(self, text: str) -> bool:
        pattern = self.head.get("match")
        return bool(pattern and re.search(pattern, text, re.IGNORECASE))


def tokens_about(text: str) -> int:
    """About how many tokens a model makes of a text; no vendor's tokenizer, so good to some 15 %.

    Words count one for each six letters begun, numbers one for three digits, marks and line ends one each: what
    byte-pair tokenizers of today come to on Markdown and code.
    """
    return sum(1 + (len(word) - 1) // 6 if word[0].isalpha() else 1 for word in _WORDS.findall(text))


def checked(name: str, text: str, origin: str) -> Card:
    """A card from its name and text. Raises ``CardError``."""
    if not _NAME.match(name):
        raise CardError(f"{name!r} is no name of a card: one of {', '.join(KINDS)}, a slash, small letters and digits.")
    text = text.replace("\r\n", "\n").replace("\x00", "")
    if len(text.encode()) > MAX_BYTES:
        raise CardError(f"{name}: {len(text.encode()):,} bytes; a card has at most {MAX_BYTES:,}. Split it.")
    if not text.strip():
        raise CardError(f"{name}: empty. Write something, or go back to an earlier version.")
    card = Card(name=name, text=text, origin=origin)
    if text.startswith("---\n") and not _HEAD.match(text):
        raise CardError(f"{name}: its head begins with --- and does not end with a second line ---.")
    try:
        re.compile(card.head.get("match", ""))
    except re.error as error:
        raise CardError(f"{name}: `match: {card.head['match']}` is no regular expression: {error}") from None
    return card


def read_folder(folder: Path, origin: str) -> tuple[dict[str, Card], list[str]]:
    """The cards of a folder by name, and what was wrong with those that are left out."""
    found: dict[str, Card] = {}
    faults: list[str] = []
    for path in sorted(p for kind in KINDS for p in (folder / kind).glob("*.md")):
        name = f"{path.parent.name}/{path.stem.lower()}"
        try:
            found[name] = checked(name, path.read_text(encoding="utf-8"), origin)
        except CardError as error:
            faults.append(f"{path.name}: {error}")
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f"{path}: cannot be read as UTF-8 text: {error}")
    return found, faults


def on_disk(team: Path) -> tuple[dict[str, Card], list[str]]:
    """Bundled cards, covered by the team's own of the same name."""
    bundled, faults = read_folder(BUNDLED, "bundled")
    own, more = read_folder(team, "team")
    return {**bundled, **own}, faults + more


def choose(cards: Iterable[Card], *, hardware: str, backend: str, about: str) -> list[Card]:
    """The cards that belong to a campaign: by hardware kind, backend, and what the problem says of itself.

    ``rules`` cards with a ``match`` belong where it fits the problem; a campaign's own rules are a text of its own.
    """
    looked_at = {"hardware": hardware, "dsl": backend, "models": about, "rules": about}
    chosen = [card for card in cards if card.belongs(looked_at[card.kind])]
    return sorted(chosen, key=lambda card: (KINDS.index(card.kind), card.name))


def as_context(cards: Iterable[Card]) -> str:
    """The cards' Markdown, one after the other, as it stands in the prompt."""
    return "\n\n".join(card.body for card in cards)
