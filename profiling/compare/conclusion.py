"""The comparison in words, as one would say it to the person at the next desk."""

from __future__ import annotations

from collections.abc import Sequence

from profiling.compare.causes import Cause
from profiling.compare.difference import NOISE
from profiling.compare.reasons import Side
from profiling.words import count, duration, percent

LONG_NAME = 40
"""A longer name of a capture stands above its lanes and in the table, not twice in a sentence."""


def conclusion(
    a: Side, b: Side, verdict: str, ratio: float | None, why_not: Sequence[str], causes: Sequence[Cause]
) -> str:
    if ratio is None:
        return f"Not comparable: {'; '.join(why_not)}."
    figures = f"{who(b)} takes {time_of(b)}, {who(a)} {time_of(a)}"
    if verdict == "same":
        return f"No difference beyond the noise floor of {percent(NOISE)}: {figures}."
    if verdict == "unclear":
        return f"No clear difference: {figures}, and the occurrences of the two overlap ({spread(a)}, {spread(b)})."
    times = ratio if verdict == "faster" else 1 / ratio
    said = f"B is {times:.2f} times {'as fast' if verdict == 'faster' else 'slower, not faster'}: {figures}."
    if verdict == "slower":
        said = f"B is slower, {times:.2f} times the time: {figures}."
    return " ".join([said, *because(causes)])


def because(causes: Sequence[Cause]) -> list[str]:
    """The main cause with its evidence, and the next by its title."""
    if not causes:
        return ["No single cause stands out."]
    first, *rest = causes
    said = [f"The cause: {first.title}. {first.evidence}"]
    if rest:
        said.append(f"Behind it: {rest[0].title}. {rest[0].evidence}")
    return said


def who(side: Side) -> str:
    names = side.selection.names(2)
    if side.selection.text and names:
        more = ", …" if len(side.selection.names(3)) > 2 else ""
        return f"{side.letter} ({', '.join(names)}{more})"
    return f"{side.letter} ({side.name})" if len(side.name) <= LONG_NAME else side.letter


def time_of(side: Side) -> str:
    selection = side.selection
    each = f" each, median of {count(selection.occurrences, 'range')}" if selection.occurrences > 1 else ""
    return f"{duration(selection.time_ns)}{each}"


def spread(side: Side) -> str:
    times = side.selection.times_ns
    return f"{side.letter} {duration(times.min())} to {duration(times.max())}"
