"""The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), for reports without a schema at hand.

Only reading, and only what lies on the surface: field numbers and raw values. Unknown fields cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELD_NUMBER = (1 << 29) - 1

Value = int | memoryview
Field = tuple[int, int, Value]


class WireError(ValueError):
    """Bytes that are no message: cut, or damaged."""


def varint(buffer: memoryview, at: int) -> tuple[int, int]:
    """The integer at ``at`` and the position behind it."""
    result = shift = 0
    try:
        while True:
            byte = buffer[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise WireError(f"a number without end at byte {at}")
    except IndexError:
        raise WireError(f"cut within a number at byte {at}") from None


def fields(message: memoryview) -> Iterator[Field]:
    """Each field of a message as (number, wire type, value), in file order.

    Values: an int for varints; for 4 and 8 bytes and for length-delimited fields a view of the bytes.

    :raises WireError: where the bytes are no message.
    """
    at, end = 0, len(message)
    while at < end:
        key = message[at]
        if key < 0x80:
            at += 1
        else:
            key, at = varint(message, at)
        number, wire = key >> 3, key & 7
        if not 0 < number <= MAX_FIELD_NUMBER:
            raise WireError(f"field number {number} at byte {at}")
        if wire == VARINT:
            value, at = varint(message, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            length, at = varint(message, at)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise WireError(f"wire type {wire} at byte {at}")
        if at + length > end:
            raise WireError(f"a field of {length} bytes at byte {at}, of which {end - at} are there")
        yield number, wire, message[at : at + length]
        at += length


def first(message: memoryview, number: int) -> Value | None:
    """The first field with this number, or None."""
    return next((value for found, _, value in fields(message) if found == number), None)


def view(value: Value | None) -> memoryview:
    """A field that should be a message or a string; empty where it is something else."""
    return value if isinstance(value, memoryview) else memoryview(b"")


def integer(value: Value | None, default: int = 0) -> int:
    return value if isinstance(value, int) else default


def text(value: Value | None) -> str:
    return bytes(view(value)).decode("utf-8", "replace")


def real(value: Value | None) -> float:
    """A float or double; NaN where the field is neither."""
    raw = view(value)
    if len(raw) == 8:
        return float(struct.unpack("<d", raw)[0])
    return float(struct.unpack("<f", raw)[0]) if len(raw) == 4 else float("nan")
