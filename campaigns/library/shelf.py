"""The shelf: a row for each approval, found again from the reviews at any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from campaigns.actions import ActionError
from campaigns.harness.problem import ITEMSIZE_BYTES, Problem, load_problem
from campaigns.models import Attempt, Decision, Kernel, Measurement, Review

MAX_LISTED = 12
"""Values of an axis in one line of words."""


def collect() -> None:
    """Put every approval of this installation on the shelf that is not on it. An imported campaign's are not ours."""
    approvals = Review.objects.filter(
        decision=Decision.APPROVED, kernel=None, attempt__campaign__imported_from__isnull=True
    )
    rows = []
    for review in approvals.select_related("attempt__campaign"):
        report = review.attempt.parsed_report()
        if report is not None:
            campaign = review.attempt.campaign
            rows.append(
                Kernel(
                    review=review,
                    operator=campaign.problem,
                    hardware=report.host.kind[:200],
                    backend=review.attempt.backend,
                )
            )
    Kernel.objects.bulk_create(rows, ignore_conflicts=True)  # two people may look at once


def kernels(operators: list[str] | None = None) -> list[Kernel]:
    """All kernels on the shelf, those off it included: ``why_not`` says so."""
    collect()
    found = Kernel.objects.select_related(
        "review__reviewer", "review__attempt__campaign", "review__attempt__idea__author"
    )
    found = found.prefetch_related("review__attempt__measurements")
    return list(found.filter(operator__in=operators) if operators is not None else found)


def withdraw(kernel: Kernel, person: User | None, reason: str) -> None:
    """Take a kernel off the shelf. What was exported with it is shown as holding it."""
    if not reason.strip():
        raise ActionError("Say why: who uses the kernel will ask.")
    changed = Kernel.objects.filter(pk=kernel.pk, withdrawn_at=None).update(
        withdrawn_at=timezone.now(), withdrawn_by=person, withdrawn_reason=reason.strip()[:5000]
    )
    kernel.refresh_from_db()
    if not changed:
        raise ActionError(f"It was withdrawn before, at {kernel.withdrawn_at:%Y-%m-%d %H:%M} UTC.")


def problem_of(kernel: Kernel) -> Problem:
    return load_problem(kernel.review.attempt.campaign.problem_files)


def entry(kernel: Kernel, problem: Problem) -> dict[str, Any]:
    """What a dispatcher must know of a kernel: where it was tested right, where it is approved, how fast it was."""
    told = measured(kernel.review.attempt, problem, kernel.hardware)
    return {
        "id": kernel.review.sha256[:12],
        **told,
        "range": narrowed(kernel.review.range, kernel.review.attempt.ranges or []),
    }


def measured(attempt: Attempt, problem: Problem, hardware: str) -> dict[str, Any]:
    """The same of any attempt: ``hardware`` is ``cpu`` or the GPU's name."""
    tested: dict[str, dict[str, list[int]]] = {}
    points = []
    for row, dtype in right(attempt, problem):
        box = tested.setdefault(dtype, {})
        for name, value in row.axes.items():
            lo, hi = box.get(name, [value, value])
            box[name] = [min(lo, value), max(hi, value)]
        if row.speedup is not None:
            points.append({"axes": row.axes, "dtype": dtype, "speedup": row.speedup})
    return {
        "device": "cpu" if hardware == "cpu" else "cuda",
        "hardware": hardware,
        "backend": attempt.backend,
        "baseline": attempt.campaign.baseline,
        "range": narrowed(None, attempt.ranges or []),
        "tested": tested,
        "points": points,
    }


def right(attempt: Attempt, problem: Problem) -> Iterator[tuple[Measurement, str]]:
    """Each workload on which the attempt was tested and right, with its dtype."""
    workloads = {w.name: w for w in problem.workloads}
    for row in attempt.measurements.all():
        workload = workloads.get(row.workload) or workloads.get(row.workload.partition(", ")[0])  # one of a boundary's
        if workload is not None and row.correct is True:
            yield row, workload.dtype


def narrowed(approved: dict[str, Any] | None, won: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What was approved, and no more than where it was kept: one that wins on a range only serves that range."""
    if not won:
        return approved
    if approved is None or approved["axis"] != won[0]["axis"]:
        return won[0]
    return {"axis": won[0]["axis"], "lo": max(approved["lo"], won[0]["lo"]), "hi": min(approved["hi"], won[0]["hi"])}


def served(kernel: Kernel, problem: Problem) -> list[str]:
    """The range in words, dtype by dtype, with the shapes in it that were tested: for pages and for the package's own
    documentation. Between those shapes nothing was measured."""
    lines = []
    told = entry(kernel, problem)
    for dtype, box in sorted(told["tested"].items(), key=lambda item: ITEMSIZE_BYTES[item[0]]):
        bounds = dict(box)
        if told["range"] and told["range"]["axis"] in bounds:
            (lo, hi), axis = bounds[told["range"]["axis"]], told["range"]["axis"]
            bounds[axis] = [max(lo, told["range"]["lo"]), min(hi, told["range"]["hi"])]
        within = ", ".join(
            f"{name} {lo:,} to {hi:,}" if lo != hi else f"{name} {lo:,}" for name, (lo, hi) in bounds.items()
        )
        axes = [row.axes for row, kind in right(kernel.review.attempt, problem) if kind == dtype]
        lines.append(f"{dtype}: {within}; {tested_at(bounds, axes)}")
    return lines


def tested_at(bounds: dict[str, list[int]], shapes: list[dict[str, int]]) -> str:
    """ "tested at 3 shapes: tokens 1, 4,096, 65,536": of the shapes within the bounds the values of each axis that varies."""
    inside = [
        axes for axes in shapes if all(bounds[name][0] <= value <= bounds[name][1] for name, value in axes.items())
    ]
    values = {name: sorted({axes[name] for axes in inside if name in axes}) for name in bounds}
    told = "; ".join(f"{name} {listed(found)}" for name, found in values.items() if len(found) > 1)
    return f"tested at {len(inside)} shape{'s' * (len(inside) != 1)}" + (f": {told}" if told else "")


def listed(values: list[int]) -> str:
    shown = values if len(values) <= MAX_LISTED else [*values[: MAX_LISTED - 1], values[-1]]
    texts = [f"{value:,}" for value in shown]
    return " · ".join(texts if len(shown) == len(values) else [*texts[:-1], "…", texts[-1]])
