"""Trace events as typed records, however broken some of them are: each is read, repaired, or counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from profiling.importers.kineto_scan import EVENT, NEXT_EVENT, escape_inner_quotes, scan

NOT_THERE = msgspec.Raw()


class Event(msgspec.Struct, gc=False):
    """One trace event; times and args stay JSON until somebody needs them."""

    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = None
    tid: Any = None
    id: Any = None
    ts: msgspec.Raw = NOT_THERE
    dur: msgspec.Raw = NOT_THERE
    args: msgspec.Raw = NOT_THERE


_events = msgspec.json.Decoder(list[Event])
_event = msgspec.json.Decoder(Event)
DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_CONTROL = bytes.maketrans(bytes([*range(32), 127]), b" " * 33)
_ESCAPE = re.compile(rb"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NO_NUMBER = re.compile(rb"([:,\[]\s*)[-+]?(?:nan|inf|infinity)(?:\([a-z]*\))?(?=\s*[,}\]])", re.IGNORECASE)


def decode(buffer: bytes, spans: list[tuple[int, int]]) -> tuple[list[Event], int]:
    """Events of a stretch of an array, and how many could not be read.

    Tried in turn: as it stands; with control characters, bad UTF-8 and numbers that are none replaced; piece by piece.
    """
    if not spans:
        return [], 0
    whole = buffer[spans[0][0] : spans[-1][1]]
    for text in (whole, None):
        try:
            return _events.decode(b"[%b]" % (text if text is not None else cleaned(whole))), 0
        except DECODE_ERRORS:
            continue
    return piece_by_piece(cleaned(whole))


def cleaned(text: bytes) -> bytes:
    """Control characters, bad UTF-8, escapes that JSON does not know, and numbers that are none, replaced."""
    text = text.translate(_CONTROL).decode("utf-8", "replace").encode()
    return _NO_NUMBER.sub(rb"\1null", _ESCAPE.sub(sound_escape, text))


def sound_escape(match: re.Match[bytes]) -> bytes:
    escape = match.group(1)
    if escape[:1] == b"u":
        units = [int(unit, 16) for unit in re.findall(rb"[0-9a-fA-F]{4}", escape)]
        if len(units) == 2 or (units and not 0xD800 <= units[0] < 0xE000):
            return match.group()
        return rb"\ufffd" if units else rb"\\u"
    return match.group() if escape in b'"\\/bfnrt' else b"\\\\" + escape


def piece_by_piece(text: bytes) -> tuple[list[Event], int]:
    """Cut where an event begins; what of a piece is whole is read as it is, else mended, else counted as broken."""
    found: list[Event] = []
    broken = 0
    for piece in cut(text):
        inside = [span for span in scan(piece).objects if piece[span[0] : span[0] + 1] == b"{"]
        events = [one(piece[start:end]) for start, end in inside] or [None]
        if None in events:
            events = [repaired(piece)]
        sound = [event for event in events if event is not None]
        broken += int(None in events and bool(EVENT.search(piece)))
        found += sound
    return found, broken


def cut(text: bytes) -> Iterator[bytes]:
    start = 0
    for match in NEXT_EVENT.finditer(text):
        yield closed(text[start : match.start()] + match.group().partition(b",")[0])
        start = match.end()
    yield closed(text[start:])


def closed(piece: bytes) -> bytes:
    return piece.strip(b" ,")


def one(piece: bytes) -> Event | None:
    try:
        return _event.decode(piece)
    except DECODE_ERRORS:
        return None


def repaired(piece: bytes) -> Event | None:
    begin = EVENT.search(piece)
    if begin is None:
        return None
    mended = escape_inner_quotes(piece[begin.start() :])
    for tail in (b"", b"}", b"}}"):
        event = one(mended + tail)
        if event is not None:
            return event
    return None


def arguments(event: Event) -> dict[str, Any]:
    """The event's args; empty where it has none or they are no object."""
    raw = bytes(event.args)
    if not raw:
        return {}
    try:
        found = msgspec.json.decode(raw)
    except DECODE_ERRORS:
        try:
            found = json.loads(cleaned(raw), strict=False)
        except (ValueError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}


class _Call(msgspec.Struct, gc=False):
    correlation: Any = None


_call = msgspec.json.Decoder(_Call)


def correlation(event: Event) -> Any:
    """Of the event's args the correlation id alone, which is many times quicker than all of them."""
    try:
        return _call.decode(event.args).correlation
    except DECODE_ERRORS:
        return arguments(event).get("correlation")
