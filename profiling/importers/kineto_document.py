"""Walk a trace file from its first byte to its last: small facts by key, events in batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from profiling.importers import kineto_scan as scanning
from profiling.importers.kineto_events import DECODE_ERRORS, Event, cleaned, decode, piece_by_piece
from profiling.importers.limits import Refused

MAX_VALUE_BYTES = 1 << 20
"""A value beside traceEvents that is longer is passed over."""
STUCK_BYTES = 4 << 20
"""No event is this long: what looks like one begins with a broken quote."""
_SPACE, _COMMAS, _MARK = re.compile(rb"\s+"), re.compile(rb"[\s,]+"), re.compile(rb"[\s\xef\xbb\xbf]+")
_TOKEN = re.compile(rb'["{}\[\]]')
_SCALAR_END = re.compile(rb"[,}\]\s]")
_AFTER_ARRAY = re.compile(rb'\s*(?:,\s*(?:"|\})|\}|\Z)')
RECORD = "Record the trace again and let the profiler finish (`prof.export_chrome_trace`), or copy the file again."


class Document:
    """A trace as it streams by. After ``batches`` is through, ``facts`` holds what stands beside the events.

    :param keys: top-level keys whose values are kept.
    """

    def __init__(self, pieces: Iterator[bytes], keys: tuple[str, ...]) -> None:
        self._pieces, self._keys = pieces, keys
        self._buffer = b""
        self._at = 0
        self._passed = 0
        self._ended = False
        self.facts: dict[str, Any] = {}
        self.events = 0
        self.broken = 0
        self.has_events = False
        self.filled = False
        """Whether anything at all stands between the brackets of the events."""
        self.closed = True
        """Whether the end of the events was seen. The bare array form may lack it (Trace Event Format)."""

    @property
    def position(self) -> int:
        """Byte of the expanded file."""
        return self._passed + self._at

    def batches(self) -> Iterator[list[Event]]:
        """Events in file order.

        :raises Refused: when the JSON is cut or is none.
        """
        self._skip(_MARK)
        first = self._peek()
        if first == b"[":
            self._at += 1
            self.has_events = True
            yield from self._array(bare=True)
        elif first == b"{":
            self._at += 1
            yield from self._object()
        else:
            raise Refused("a JSON file that is neither an object nor a list", RECORD, format="json")

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        if piece is None:
            self._ended = True
            return False
        self._passed += self._at
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        return True

    def _peek(self) -> bytes:
        while self._at >= len(self._buffer):
            if not self._more():
                return b""
        return self._buffer[self._at : self._at + 1]

    def _skip(self, blanks: re.Pattern[bytes]) -> None:
        while self._peek():
            match = blanks.match(self._buffer, self._at)
            if match is None:
                return
            self._at = match.end()

    def _object(self) -> Iterator[list[Event]]:
        while True:
            self._skip(_COMMAS)
            byte = self._peek()
            if byte == b"}":
                return
            if byte != b'"':
                raise self._wrong(byte, "a key")
            key = self._string()
            self._skip(_SPACE)
            if self._peek() != b":":
                raise self._wrong(self._peek(), f"`:` after the key {key[:40]!r}")
            self._at += 1
            self._skip(_SPACE)
            if key == "traceEvents" and self._peek() == b"[":
                self._at += 1
                self.has_events = True
                yield from self._array(bare=False)
            else:
                self._keep(key)

    def _wrong(self, found: bytes, wanted: str) -> Refused:
        if not found:
            return self._cut()
        return Refused(
            f"damaged JSON: {wanted} was expected at byte {self.position:,}, but {found!r} stands there",
            RECORD,
            format="kineto" if self.has_events else "json",
        )

    def _cut(self) -> Refused:
        events = f", after {self.events:,} events" if self.has_events else ""
        return Refused(
            f"a cut JSON file: it ends at byte {self._passed + len(self._buffer):,}{events}",
            RECORD,
            format="kineto" if self.has_events else "json",
        )

    def _string(self) -> str:
        raw = self._value_bytes()
        return str(decoded(raw)) if raw else ""

    def _keep(self, key: str) -> None:
        raw = self._value_bytes()
        if raw and key in self._keys:
            self.facts[key] = decoded(raw)

    def _value_bytes(self) -> bytes:
        """The JSON value at this place; empty where it is longer than is kept. Depth is counted, not recursed into."""
        first = self._peek()
        if first == b"":
            raise self._cut()
        if first not in (b'"', b"{", b"["):
            return self._scalar()
        kept = bytearray()
        depth, inside = 0, False
        while True:
            match = (_QUOTE_OR_ESCAPE if inside else _TOKEN).search(self._buffer, self._at)
            stop = match.end() if match else len(self._buffer)
            if len(kept) <= MAX_VALUE_BYTES:
                kept += self._buffer[self._at : stop]
            self._at = stop
            if match is None:
                if not self._more():
                    raise self._cut()
                continue
            token = match.group()
            if inside:
                if token[:1] == b"\\":
                    if self._peek() == b"":
                        raise self._cut()
                    kept += self._buffer[self._at : self._at + 1]
                    self._at += 1
                    continue
                inside = False
            elif token == b'"':
                inside = True
                continue
            else:
                depth += 1 if token in b"{[" else -1
            if depth <= 0:
                return bytes(kept) if len(kept) <= MAX_VALUE_BYTES else b""

    def _scalar(self) -> bytes:
        kept = bytearray()
        while True:
            match = _SCALAR_END.search(self._buffer, self._at)
            stop = match.start() if match else len(self._buffer)
            kept += self._buffer[self._at : stop]
            self._at = stop
            if match or not self._more() or len(kept) > 4096:
                return bytes(kept)

    def _array(self, bare: bool) -> Iterator[list[Event]]:
        """Elements up to the array's end; ``_at`` then stands behind it."""
        while True:
            self._skip(_COMMAS)
            part = self._buffer[self._at :]
            found = scanning.scan(part)
            self.filled = self.filled or bool(part[: found.closed if found.closed >= 0 else None].strip())
            closed = found.closed if self._plausible_end(part, found.closed) else -1
            if closed != found.closed:
                events, used = self._salvage(part, -1)
            else:
                events, broken = decode(part, found.objects)
                used = closed if closed >= 0 else (found.objects[-1][1] if found.objects else 0)
                if broken or (closed < 0 and len(part) - used > STUCK_BYTES):
                    events, used = self._salvage(part, closed)
            self.events += len(events)
            self._at += used
            yield events
            if closed >= 0:
                self._at += 1
                return
            if not self._more():
                yield self._last(bare)
                return

    def _plausible_end(self, part: bytes, closed: int) -> bool:
        """Whether what follows a ``]`` can follow the array: an unpaired quote makes brackets of names look like ends."""
        while closed >= 0 and len(part) - closed < 64 and not self._ended:
            if not self._more():
                break
            part = self._buffer[self._at :]
        return closed >= 0 and bool(_AFTER_ARRAY.match(part, closed + 1))

    def _salvage(self, part: bytes, closed: int) -> tuple[list[Event], int]:
        """Read what is broken piece by piece, up to the last place where an event surely begins."""
        end = closed
        if end < 0:
            matches = list(scanning.NEXT_EVENT.finditer(part, max(0, len(part) - STUCK_BYTES // 2)))
            end = matches[-1].start() + 1 if matches else len(part)
            if self._ended:
                end = max(end, part.rfind(b"}") + 1)
        events, broken = piece_by_piece(cleaned(part[:end]))
        self.broken += broken
        return events, end

    def _last(self, bare: bool) -> list[Event]:
        """The file ended within the array: the bare form may; else it is cut, unless broken quotes hid the array's end."""
        rest = self._buffer[self._at :]
        end = len(rest) if bare else hidden_end(rest)
        if end < 0:
            raise self._cut()
        self.closed = not bare
        events: list[Event] = []
        if scanning.EVENT.search(rest[:end]):
            events, broken = piece_by_piece(cleaned(rest[:end]))
            self.broken += broken
            self.events += len(events)
        self._at += end
        return events


def hidden_end(rest: bytes) -> int:
    """Where the array's ``]`` stands behind, if the file goes on soundly from there to its end; else -1."""
    for match in reversed(list(_ARRAY_END.finditer(rest))[-20:]):
        if decoded(b'{"x": 0' + rest[match.end() :]) is not None:
            return match.end()
    return -1


_ARRAY_END = re.compile(rb"\}\s{0,64}\](?=\s{0,64}[,}])")
_QUOTE_OR_ESCAPE = re.compile(rb'["\\]')


def decoded(raw: bytes) -> Any:
    """A JSON value, or None where it is none."""
    import msgspec

    for text in (raw, None):
        try:
            return msgspec.json.decode(text if text is not None else cleaned(raw))
        except DECODE_ERRORS:
            continue
    return None
