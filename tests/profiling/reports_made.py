"""Small Nsight Compute reports, made to order in the documented container and wire format."""

from __future__ import annotations

import struct
from typing import Any


def varint(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def message(*fields: tuple[int, Any]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def sized(raw: bytes) -> bytes:
    return struct.pack("<I", len(raw)) + raw


def metric_value(value: float | str) -> bytes:
    return field(1 if isinstance(value, str) else 5 if isinstance(value, int) else 3, value)


class Report:
    """Blocks in order; the names of a result may stand in any block's string table, also a later one's."""

    def __init__(self, version: int = 7) -> None:
        self.version = version
        self.names: list[str] = []
        self.blocks: list[tuple[list[str], list[bytes], list[bytes], bytes]] = []

    def number(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def block(
        self, names: list[str] = (), sources: list[bytes] = (), results: list[bytes] = (), session: bytes = b""  # type: ignore[assignment]
    ) -> Report:  # fmt: skip
        self.blocks.append((list(names), list(sources), list(results), session))
        return self

    def result(self, name: str = "kernel", extra: bytes = b"", **metrics: float | str) -> bytes:
        listed = {key.replace("__dot__", "."): value for key, value in metrics.items()}
        return self.launch(name, listed, extra)

    def launch(self, name: str, metrics: dict[str, float | str], extra: bytes = b"") -> bytes:
        rows = [message((1, self.number(key)), (2, metric_value(value)), (4, 0)) for key, value in metrics.items()]
        grid, block = message((1, 4), (2, 1), (3, 1)), message((1, 128), (2, 1), (3, 1))
        return (
            message((5, name), (6, name), (10, grid), (11, block), (22, 1), (23, 7), *((13, r) for r in rows)) + extra
        )

    def content(self) -> bytes:
        parts = [b"NVR\0", sized(message((1, self.version)))]
        for names, sources, results, session in self.blocks:
            payload = b"".join(sized(entry) for entry in (*sources, *results))
            table = message(*((1, name) for name in names))
            fields: list[tuple[int, Any]] = [(1, len(sources)), (2, len(results)), (4, table), (5, len(payload))]
            if session:
                fields.insert(2, (3, session))
            parts += [sized(message(*fields)), payload]
        return b"".join(parts)

    def simple(self, *results: bytes) -> bytes:
        """All results in one block, all names in another that comes after it."""
        return self.block(results=list(results)).block(names=self.names).content()
