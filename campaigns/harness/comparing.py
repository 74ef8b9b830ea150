"""Outputs of a runner against the reference, or against the baseline's and where they differ by the reference."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from .accuracy import Comparison, agrees, compare
from .bench import Bench, Stand
from .memory import as_float64
from .problem import Problem
from .runner import InputSlot, OutputSlot, Runner


def against(problem: Problem, stand: Stand, outputs: OutputSlot, expected: dict[str, NDArray[Any]]) -> Comparison:
    """Every output against what is expected; the worst of them."""
    worst = Comparison(True, 0.0)
    specs = {s.name: s for s in problem.outputs}
    for place in outputs.places:
        t = problem.tolerance_for(specs[place.name], stand.workload)
        found = compare(as_float64(outputs.tensor(place), place.dtype), expected[place.name], t)
        if not found.passed:
            return Comparison(False, found.error, f"output {place.name}: {found.detail}")
        worst = max(worst, found, key=lambda c: c.error)
    return worst


def near(problem: Problem, stand: Stand, outputs: OutputSlot, other: OutputSlot) -> bool:
    """Whether two runners' outputs are within twice the tolerance, as they are when both are right."""
    specs = {s.name: s for s in problem.outputs}
    for place, place_of_other in zip(outputs.places, other.places, strict=True):
        t = 2.0 * problem.tolerance_for(specs[place.name], stand.workload)
        a, b = outputs.tensor(place), other.tensor(place_of_other)
        if place.dtype != "float32":
            a, b = as_float64(a, place.dtype), as_float64(b, place.dtype)
        if not agrees(a, b, t):
            return False
    return True


def compare_slot(
    problem: Problem,
    bench: Bench,
    stand: Stand,
    runner: Runner,
    slot: InputSlot,
    expected: dict[str, NDArray[Any]] | None,
) -> Comparison:
    """Against the reference where it is known; else against the baseline, and where they differ by the reference."""
    outputs = runner.slots[slot.name]
    if expected is None:
        assert bench.baseline is not None
        other = bench.baseline.slots[slot.name]
        if near(problem, stand, outputs, other):
            return Comparison(True, 0.0)
        expected = bench.expect(stand, slot)
    return against(problem, stand, outputs, expected)
