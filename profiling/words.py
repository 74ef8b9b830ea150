"""Numbers as an engineer reads them. No Django: findings, commands and pages share these."""

from __future__ import annotations


def duration(ns: float) -> str:
    """``1.31 ms``, ``24.1 ms``, ``3.8 µs``, ``812 ns``: three digits and a unit."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(ns) >= factor * 0.9995:
            value = ns / factor
            return f"{value:,.{2 if abs(value) < 9.995 else 1 if abs(value) < 999.5 else 0}f} {unit}"
    return f"{ns:.0f} ns"


def percent(share: float) -> str:
    """``7.8 %``; never ``0.0 %`` for something, nor ``100 %`` for less than all."""
    value = 100 * share
    if 0 < value < 0.1:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    return f"{value:.1f} %" if value < 99.95 else "100 %"


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(byte_count: float) -> str:
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if byte_count >= factor:
            return f"{byte_count / factor:.3g} {unit}"
    return f"{byte_count:.0f} B"
