"""Kept for a range of the swept axis: found from the intervals, its end by bisection, and judged by its own numbers."""

from __future__ import annotations

import pytest

from campaigns import judge
from campaigns.harness import evaluator, ranges
from campaigns.harness.gate import MIN_NOISE
from campaigns.harness.report import RangeWin, Ratio, WorkloadResult
from campaigns.library.shelf import narrowed

from .conftest import named, needs_sandbox, request_for
from .test_judge import NOISE, confirmed, report


def row(value: int, lo: float, hi: float) -> WorkloadResult:
    over = Ratio(value=(lo * hi) ** 0.5, lo=lo, hi=hi)
    return WorkloadResult(name=f"n{value}", hidden=False, axes={"n": value}, over_incumbent=over, noise=NOISE)


def test_the_run_of_winning_values_with_the_greatest_gain_is_found():
    rows = [row(64, 0.7, 0.8), row(1, 1.2, 1.3), row(4, 1.1, 1.2), row(16, 0.99, 1.01), row(256, 1.05, 1.06)]

    found = ranges.find(rows, "n", MIN_NOISE)

    assert found is not None
    assert (found.values, found.below, found.above) == ([1, 4], None, 16)


@pytest.mark.parametrize("rows", [[row(1, 1.1, 1.2), row(4, 1.1, 1.2)], [row(1, 0.9, 1.1), row(4, 0.9, 1.1)], []])
def test_there_is_no_range_where_it_wins_everywhere_or_nowhere(rows: list[WorkloadResult]):
    assert ranges.find(rows, "n", MIN_NOISE) is None


def test_a_value_at_which_one_of_two_workloads_loses_does_not_win():
    other = WorkloadResult(name="other", hidden=False, axes={"n": 4}, over_incumbent=row(4, 0.8, 0.9).over_incumbent)
    found = ranges.find([row(1, 1.1, 1.2), row(4, 1.1, 1.2), other], "n", MIN_NOISE)

    assert found is not None
    assert found.values == [1]


def test_the_next_value_lies_between_until_they_are_close():
    assert ranges.between(1, 100) == 10
    assert ranges.between(100, 1) == 10
    assert ranges.between(100, 110) is None
    assert ranges.between(1, 2) is None


def won(lo: float, hi: float) -> RangeWin:
    ratio = Ratio(value=(lo * hi) ** 0.5, lo=lo, hi=hi)
    return RangeWin(axis="n", lo=1, hi=4, workloads=["n1", "n4"], speedup=ratio, over_incumbent=ratio, noise=NOISE)


ROWS = [row(1, 1.2, 1.3), row(4, 1.1, 1.2), row(64, 0.5, 0.6)]


def test_a_confirmed_range_is_kept_with_its_own_numbers():
    over = Ratio(value=0.9, lo=0.85, hi=0.94)
    found = judge.judge(
        report(over, workloads=ROWS, range=won(1.1, 1.2), confirmation=confirmed(Ratio(value=1.1, lo=1.05, hi=1.2)))
    )

    assert found.verdict == "kept"
    assert found.ranges == [{"axis": "n", "lo": 1, "hi": 4}]
    assert found.over_incumbent == won(1.1, 1.2).over_incumbent
    assert "for n from 1 to 4" in found.reason


@pytest.mark.parametrize(
    ("rows", "confirmation"),
    [
        (ROWS, None),
        (ROWS, confirmed(Ratio(value=1.0, lo=0.95, hi=1.05))),
        ([row(1, 1.0, 1.3), *ROWS[1:]], confirmed(Ratio(value=1.1, lo=1.05, hi=1.2))),
    ],
)
def test_a_range_that_is_not_confirmed_or_not_won_throughout_is_reverted(rows, confirmation):
    over = Ratio(value=0.9, lo=0.85, hi=0.94)
    found = judge.judge(report(over, workloads=rows, range=won(1.1, 1.2), confirmation=confirmation))

    assert (found.verdict, found.ranges) == ("reverted", [])


def test_the_library_serves_no_more_than_the_range_in_which_it_was_kept():
    kept = [{"axis": "n", "lo": 1, "hi": 4}]

    assert narrowed(None, kept) == kept[0]
    assert narrowed({"axis": "n", "lo": 2, "hi": 9}, kept) == {"axis": "n", "lo": 2, "hi": 4}
    assert narrowed({"axis": "n", "lo": 2, "hi": 9}, []) == {"axis": "n", "lo": 2, "hi": 9}


@needs_sandbox
@pytest.mark.slow
def test_a_kernel_that_is_faster_for_few_rows_is_kept_for_those(monkeypatch):
    monkeypatch.setattr("campaigns.harness.stages.range.PROBES", 2)
    found = evaluator.evaluate(request_for(named("few_rows.cpp")))
    judgement = judge.judge(found)

    assert judgement.verdict == "kept", judgement.reason
    ((bounds),) = judgement.ranges
    assert bounds["axis"] == "rows"
    assert bounds["lo"] == 32
    assert bounds["hi"] in (63, 84)  # 112 loses, 84 wins; a busy machine may not tell
    boundary = [w for w in found.workloads if "boundary" in w.labels]
    assert boundary
    assert all(w.correct for w in boundary)
