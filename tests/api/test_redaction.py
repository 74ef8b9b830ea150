from __future__ import annotations

import pytest

from campaigns.harness.report import Finding, StageResult, WorkloadResult
from campaigns.redaction import Redactor, aggregate, visible_ranges
from tests.factories import make_campaign, make_report

pytestmark = pytest.mark.django_db


def report_of(outcome, detail, rows, stage="correctness"):
    failed = StageResult(name=stage, status="failed", detail=detail, seconds=1.0)
    return make_report(make_campaign(), outcome, [], stages=[failed], workloads=rows, summary=detail)


def row(name, hidden=False, **fields):
    return WorkloadResult(name=name, hidden=hidden, axes={"rows": 1000, "hidden": 1536}, **fields)


def test_a_hidden_workloads_name_and_axes_are_cut_from_a_sentence():
    cleaner = Redactor(report_of("incorrect", "x", [row("cpu_r1000_h1536", hidden=True)]))
    text = "wrong on cpu_r1000_h1536 (rows=1000, hidden: 1,536), and hidden workload 3 too"
    assert cleaner.scrub(text) == "wrong on a hidden workload (rows=?, hidden: ?), and a hidden workload too"


def test_a_name_that_only_begins_like_a_hidden_one_stays():
    cleaner = Redactor(report_of("incorrect", "x", [row("r1_h1", hidden=True)]))
    assert cleaner.scrub("r1_h1024 is visible; r1_h1 is not") == "r1_h1024 is visible; a hidden workload is not"


def test_an_exception_on_a_hidden_workload_tells_nothing():
    rows = [row("secret", hidden=True, correct=False, detail="RuntimeError: shape 1000 x 1536"), row("seen")]
    report = report_of("launch_failed", "hidden workload 1: RuntimeError: shape 1000 x 1536", rows)
    assert (
        Redactor(report).stage(report.stages[0])
        == "launch failed (RuntimeError) on a hidden workload; which one, and more, is not told"
    )
    assert "1536" not in Redactor(report).reason(report.summary)


def test_an_exception_on_a_visible_workload_is_withheld_once_a_hidden_one_had_run():
    rows = [row("secret", hidden=True, correct=True), row("seen", correct=False)]
    report = report_of("launch_failed", "seen: RuntimeError: before it came 1000 x 1536", rows)
    assert "1536" not in Redactor(report).stage(report.stages[0])
    assert Redactor(report).stage(report.stages[0]).startswith("seen: launch failed")
    assert Redactor(report).output() is None


def test_an_exception_before_any_hidden_workload_is_told_whole():
    report = report_of(
        "launch_failed", "seen: NameError: name 'tl' is not defined", [row("secret", hidden=True), row("seen")]
    )
    assert Redactor(report).stage(report.stages[0]) == "seen: NameError: name 'tl' is not defined"
    assert Redactor(report).reason(report.summary) == "seen: NameError: name 'tl' is not defined"
    assert Redactor(report).output() is not None


def test_wrong_values_on_a_visible_workload_are_told():
    rows = [row("secret", hidden=True, correct=True), row("seen", correct=False)]
    report = report_of("incorrect", "seen: 3 of 4096 values are wrong", rows)
    assert Redactor(report).stage(report.stages[0]) == "seen: 3 of 4096 values are wrong"


def test_a_build_log_is_told_whatever_happened_later():
    rows = [row("secret", hidden=True, correct=True)]
    report = report_of("build_failed", "kernel.cpp:12: error: 'vloat' was not declared", rows, stage="build")
    assert Redactor(report).stage(report.stages[0]) == "kernel.cpp:12: error: 'vloat' was not declared"


def test_a_finding_about_a_hidden_workload_is_cut_whole_with_its_numbers():
    cleaner = Redactor(report_of("incorrect", "x", [row("secret", hidden=True)]))
    assert cleaner.evidence("secret: 3.20 µs, and this host needs at least 5.10 µs") == "seen on a hidden workload"
    assert cleaner.evidence("seen: 3.20 µs") == "seen: 3.20 µs"


def test_hidden_workloads_are_counts_and_one_mean():
    found = aggregate(make_report(make_campaign(), "kept", []).workloads)
    assert (found["count"], found["right"], found["wrong"]) == (5, 5, 0)
    assert found["speedup"] == pytest.approx(2.31 * 1.12, rel=0.1)
    assert set(found) == {"count", "right", "wrong", "not_checked", "timed", "speedup"}


def test_a_range_ends_at_visible_workloads():
    rows = [WorkloadResult(name=str(n), hidden=h, axes={"t": n}) for n, h in ((64, False), (900, False), (1000, True))]
    assert visible_ranges([{"axis": "t", "lo": 10, "hi": 1000}], rows) == [{"axis": "t", "lo": 64, "hi": 900}]
    assert visible_ranges([{"axis": "t", "lo": 950, "hi": None}], rows) == []


def test_a_verdict_that_rests_on_a_finding_about_a_hidden_workload_keeps_its_numbers():
    finding = Finding(rule="below-floor", severity="block", evidence="secret: 3.20 µs, and it needs 5.10 µs")
    report = make_report(make_campaign(), "flagged", [finding], workloads=[row("secret", hidden=True, time_us=3.2)])
    assert Redactor(report).reason(f"below-floor: {finding.evidence}") == "below-floor: seen on a hidden workload"


def test_a_hidden_workload_that_was_too_slow_is_not_named():
    cleaner = Redactor(report_of("measured", "x", [row("r1000", hidden=True, correct=True)]))
    said = cleaner.reason("faster overall, 1.1×; but hidden workload r1000 is 0.9× (0.8 to 0.9)")
    assert said == "faster overall, 1.1×; but a hidden workload is 0.9× (0.8 to 0.9)"


def test_an_exception_of_the_candidates_own_making_has_no_name():
    rows = [row("secret", hidden=True, correct=False, detail="Rows1000Error: x")]
    report = report_of("launch_failed", "hidden workload 1: Rows1000Error: x", rows)
    assert Redactor(report).stage(report.stages[0]).startswith("launch failed on a hidden workload")
