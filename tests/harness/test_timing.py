"""Verdicts on speed. No test here asserts a time, only what must hold on a busy machine as well."""

from __future__ import annotations

import pytest

from campaigns import judge
from campaigns.harness import evaluator, report
from campaigns.harness.candidate import load_candidate
from campaigns.harness.request import CandidateSource

from .conftest import CENTRE, named, needs_sandbox, request_for

pytestmark = [needs_sandbox, pytest.mark.slow]


def judged(source: CandidateSource, **changes: object) -> tuple[report.Report, judge.Judgement]:
    found = evaluator.evaluate(request_for(source, **changes))
    return found, judge.judge(found)


def test_a_faster_candidate_is_kept_and_confirmed():
    found, judgement = judged(named("faster.cpp"))

    assert judgement.verdict == "kept", judgement.reason
    assert found.confirmation is not None
    assert found.speedup.lo <= found.speedup.value <= found.speedup.hi
    timed = [w for w in found.workloads if w.time_us is not None]
    assert {w.name for w in timed} == {"r32_c1024", "r200_c300", "r63_c1025"}
    assert all(w.baseline_us > 0 and w.incumbent_us > 0 for w in timed)


def test_a_slower_candidate_is_reverted_early_and_not_confirmed():
    found, judgement = judged(named("slower.cpp"))

    assert judgement.verdict == "reverted"
    assert found.confirmation is None
    timing = next(s for s in found.stages if s.name == "timing")
    assert timing.evidence["stopped"] == "clearly slower"


def test_an_incumbent_may_be_written_in_another_language():
    """A campaign in a language without a start kernel of its own begins from the PyTorch one."""
    start = load_candidate(CENTRE / "start" / "kernel.py", "torch")

    found, judgement = judged(named("faster.cpp"), incumbent=start)

    assert judgement.verdict == "kept", judgement.reason
    assert found.over_incumbent.lo > 1


def test_a_copy_of_the_incumbent_is_not_kept():
    start = load_candidate(CENTRE / "start" / "kernel.cpp")
    text = "// a copy\n" + start.files["kernel.cpp"]

    _, judgement = judged(CandidateSource(backend="cpp", files={"kernel.cpp": text}))

    assert judgement.verdict != "kept", judgement.reason


def test_one_that_sleeps_is_not_kept():
    _, judgement = judged(named("sleeps.cpp"))

    assert judgement.verdict in ("flagged", "reverted")


def test_visible_workloads_alone_can_be_asked_for():
    found = evaluator.evaluate(request_for(named("faster.cpp"), "visible"))

    assert [w.name for w in found.workloads] == ["r32_c1024", "r200_c300"]


def test_a_report_survives_its_way_as_json():
    found = evaluator.evaluate(request_for(named("faster.cpp"), "check"))

    assert report.decode(report.encode(found)) == found
