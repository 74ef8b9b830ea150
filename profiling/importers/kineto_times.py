"""Timestamps of traces as integer nanoseconds, digit by digit: no float ever holds one."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

MAX_NS = 1 << 62
_ZEROS = ("000", "00", "0", "")


def nanoseconds(literal: bytes) -> int | None:
    """A JSON number, or a string that holds one, in µs. Beyond three decimals it is rounded to the nearest ns.

    None: it is no number, or one that no clock shows.
    """
    text = str(literal, "ascii", "replace")
    if text[:1] == '"':
        text = text.strip('" ')
    if not text:
        return None
    whole, _, part = text.partition(".")
    digits = len(part)
    try:
        value = int(whole + part + _ZEROS[digits]) if digits <= 3 else rounded(text)
    except ValueError:
        return exotic(text)
    return value if -MAX_NS < value < MAX_NS else None


def rounded(text: str) -> int:
    try:
        return int((Decimal(text) * 1000).to_integral_value())
    except (InvalidOperation, OverflowError):
        raise ValueError(text) from None


def exotic(text: str) -> int | None:
    """Exponents; infinities and NaN are no times."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number) > MAX_NS // 1000:
        return None
    return int((number * 1000).to_integral_value())
