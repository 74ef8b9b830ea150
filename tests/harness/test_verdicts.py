"""Real candidates through the real harness: what each does, and what the harness says of it."""

from __future__ import annotations

import pytest

from campaigns.harness import sandbox
from campaigns.harness.stages import base

from .conftest import check, needs_sandbox

pytestmark = needs_sandbox

HONEST = ["slower.cpp", "leaves_the_core.cpp"]
"""Beside those of redteam.toml, where the cheats are, too."""

# file, outcome, words of the summary
BAD = [
    ("segfault.cpp", "launch_failed", "SIGSEGV"),
    ("aborts.cpp", "launch_failed", "SIGABRT"),
    ("exits_0.cpp", "launch_failed", "ended its own process during a call (exit status 0)"),
    ("no_run.cpp", "launch_failed", 'extern "C"'),
    ("raises.py", "launch_failed", "ValueError: no such luck"),
    ("system_exit.py", "launch_failed", "SystemExit"),
    ("os_exit.py", "launch_failed", "ended its own process"),
    ("kills_parent.py", "launch_failed", "Operation not permitted"),
    ("loops.cpp", "timed_out", "ended"),
    ("asks_too_much.cpp", "out_of_memory", ""),
    ("does_not_build.cpp", "build_failed", "undeclared"),
    ("syntax_error.py", "build_failed", "syntax_error.py:3"),
]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_candidate_is_right_and_not_blocked(name: str):
    report = check(name)

    assert report.outcome == "measured", report.summary
    assert [f for f in report.findings if f.severity == "block"] == []
    assert all(w.correct and w.error <= w.tolerance for w in report.workloads)


@pytest.mark.parametrize(("name", "outcome", "words"), BAD, ids=[b[0] for b in BAD])
def test_a_bad_candidate_is_named_for_what_it_does(name: str, outcome: str, words: str):
    report = check(name)

    assert report.outcome == outcome, report.summary
    assert words in report.summary
    assert report.speedup is None
    assert all(w.time_us is None for w in report.workloads)


def test_a_flagged_candidate_has_a_blocking_finding():
    report = check("hands_to_thread.cpp")

    assert [f.rule for f in report.findings if f.severity == "block"] == ["threads"]


@pytest.mark.parametrize("name", ["eats_memory.cpp", "eats_shared_memory.cpp"])
def test_a_memory_eater_is_out_of_memory(name: str, monkeypatch):
    monkeypatch.setattr(base, "CANDIDATE_LIMITS", sandbox.Limits(memory_bytes=256 * sandbox.MIB))
    monkeypatch.setattr("campaigns.harness.channel.SHARED_ALLOWANCE_BYTES", 256 << 20)

    assert check(name).outcome == "out_of_memory"


def test_a_hundred_megabytes_of_output_do_no_harm():
    report = check("prints_100_mb.cpp")

    assert report.outcome == "measured"
    assert "bytes left out" in report.output
    assert len(report.output) < 100_000


def test_an_evaluation_leaves_no_build_log_of_another():
    assert "undeclared" in check("does_not_build.cpp").build_log
    assert check("zeros.cpp").build_log == ""
