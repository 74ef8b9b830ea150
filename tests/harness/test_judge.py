from __future__ import annotations

from typing import Any

import pytest

from campaigns.harness.report import Confirmation, Finding, Host, Ratio, Report, WorkloadResult
from campaigns.judge import judge


def ratio(lo: float, hi: float) -> Ratio:
    return Ratio(value=(lo * hi) ** 0.5, lo=lo, hi=hi)


NOISE = ratio(0.985, 1.015)
HOST = Host(name="h", kind="cpu", processor="p", versions={}, sandbox="bubblewrap")


def confirmed(over: Ratio, correct: bool = True) -> Confirmation:
    return Confirmation(
        speedup=ratio(1.9, 2.2), over_incumbent=over, noise=NOISE, correct=correct, detail="did not hold"
    )


def report(over: Ratio | None = None, **changes: Any) -> Report:
    values: dict[str, Any] = {
        "outcome": "measured", "summary": "so it went", "problem": "p", "problem_sha256": "", "candidate_sha256": "",
        "incumbent_sha256": None, "baseline": "eager", "backend": "cpp", "mode": "full", "harness_version": "1",
        "host": HOST, "stages": [], "over_incumbent": over, "speedup": ratio(1.8, 2.1), "noise": NOISE,
    }  # fmt: skip
    return Report(**{**values, **changes})


def workload(over: Ratio, hidden: bool = False) -> WorkloadResult:
    return WorkloadResult(name="w", hidden=hidden, axes={}, over_incumbent=over)


def test_a_confirmed_gain_beyond_the_noise_is_kept_with_the_band_of_both_measurements():
    found = judge(report(ratio(1.05, 1.2), confirmation=confirmed(ratio(1.04, 1.1))))

    assert found.verdict == "kept"
    assert found.band == [1.8, 2.2]
    assert "noise ±1.5%" in found.reason


@pytest.mark.parametrize(
    ("over", "verdict"),
    [
        (ratio(1.01, 1.2), "stacked"),
        (ratio(0.98, 1.01), "stacked"),
        (ratio(0.9, 1.1), "stacked"),
        (ratio(0.8, 0.98), "reverted"),
    ],
)
def test_what_does_not_clear_the_noise_is_not_kept(over: Ratio, verdict: str):
    assert judge(report(over)).verdict == verdict


def test_a_gain_that_does_not_hold_in_fresh_processes_is_reverted():
    assert judge(report(ratio(1.05, 1.2), confirmation=confirmed(ratio(0.99, 1.1)))).verdict == "reverted"
    assert judge(report(ratio(1.05, 1.2))).verdict == "reverted"


def test_a_workload_that_got_slower_beyond_its_limit_is_named():
    slow = workload(ratio(0.7, 0.9))
    found = judge(report(ratio(1.05, 1.2), workloads=[slow], confirmation=confirmed(ratio(1.04, 1.1))))

    assert found.verdict == "reverted"
    assert "workload w is" in found.reason


def test_a_blocking_finding_comes_before_the_speed():
    finding = Finding(rule="threads", severity="block", evidence="it runs in 2 threads")

    found = judge(report(ratio(1.05, 1.2), findings=[finding], confirmation=confirmed(ratio(1.04, 1.1))))

    assert found.verdict == "flagged"
    assert "it runs in 2 threads" in found.reason


def test_notes_and_warnings_do_not_stop_a_keep():
    findings = [Finding(rule="state", severity="warning", evidence="keeps a table")]

    assert (
        judge(report(ratio(1.05, 1.2), findings=findings, confirmation=confirmed(ratio(1.04, 1.1)))).verdict == "kept"
    )


@pytest.mark.parametrize("outcome", ["incorrect", "build_failed", "launch_failed", "timed_out", "out_of_memory"])
def test_a_failed_candidate_has_no_speed(outcome: str):
    found = judge(report(None, outcome=outcome, speedup=None, noise=None))

    assert (found.verdict, found.speedup, found.band) == (outcome, None, None)
    assert found.reason == "so it went"


def test_an_infrastructure_fault_is_no_measurement_and_never_a_number():
    found = judge(report(ratio(1.05, 1.2), outcome="infrastructure"))

    assert (found.verdict, found.speedup, found.over_incumbent) == ("no_measurement", None, None)


@pytest.mark.parametrize(
    ("kept_with", "verdict"), [(ratio(1.7, 2.0), "kept"), (ratio(2.1, 2.4), "kept"), (ratio(3.8, 4.2), "flagged")]
)
def test_beating_an_incumbent_that_runs_slower_than_when_it_was_kept_says_nothing(kept_with: Ratio, verdict: str):
    found = judge(report(ratio(1.05, 1.2), confirmation=confirmed(ratio(1.04, 1.1))), kept_with=kept_with)

    assert found.verdict == verdict
    assert [f.rule for f in found.flags] == (["incumbent-slowed"] if verdict == "flagged" else [])
