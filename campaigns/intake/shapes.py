"""Shapes as expressions over axes: found from what a few sets of arguments gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Args = Mapping[str, int]


def expression(values: Sequence[int], cases: Sequence[Args]) -> str | int | None:
    """The plainest of a constant, an axis, or a small formula of one to three axes that gives ``values`` in all ``cases``.

    None where there is none.
    """
    if len(set(values)) == 1:
        return values[0]
    for text, guess in candidates(values, cases):
        if list(guess) == list(values):
            return text
    return None


def candidates(values: Sequence[int], cases: Sequence[Args]) -> Iterator[tuple[str, list[int]]]:
    names = list(cases[0])
    columns = {name: [case[name] for case in cases] for name in names}
    yield from ((name, columns[name]) for name in names)
    for name in names:
        yield from affine(name, columns[name], values)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            x, y = columns[a], columns[b]
            yield f"{a} * {b}", [p * q for p, q in zip(x, y, strict=True)]
            for first, second, p, q in ((a, b, x, y), (b, a, y, x)):
                k = values[0] - p[0] + q[0]
                yield f"{first} - {second}{signed(k)}", [m - n + k for m, n in zip(p, q, strict=True)]
                if all(n > 0 for n in q):
                    yield f"{first} // {second}", [m // n for m, n in zip(p, q, strict=True)]
            k = values[0] - x[0] - y[0]
            yield f"{a} + {b}{signed(k)}", [p + q + k for p, q in zip(x, y, strict=True)]
            for c in names[i + 2 :]:
                z = columns[c]
                yield f"{a} * {b} * {c}", [p * q * r for p, q, r in zip(x, y, z, strict=True)]


def affine(name: str, column: Sequence[int], values: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """``c · axis + k`` through two of the points, and ``axis // c``."""
    pairs = [(x, v) for x, v in zip(column, values, strict=True)]
    other = next((p for p in pairs if p[0] != pairs[0][0]), None)
    if other is None:
        return
    rise, run = other[1] - pairs[0][1], other[0] - pairs[0][0]
    if rise % run == 0 and rise:
        c = rise // run
        k = pairs[0][1] - c * pairs[0][0]
        yield f"{name if c == 1 else f'{c} * {name}'}{signed(k)}", [c * x + k for x in column]
    for c in range(2, 65):
        yield f"{name} // {c}", [x // c for x in column]
        yield f"({name} + {c - 1}) // {c}", [(x + c - 1) // c for x in column]


def signed(k: int) -> str:
    return "" if k == 0 else (f" + {k}" if k > 0 else f" - {-k}")
