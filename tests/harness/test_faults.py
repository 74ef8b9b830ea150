"""What is nobody's cheat: broken problems, broken baselines, dead processes, wrong requests."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from campaigns.harness import evaluator
from campaigns.harness.candidate import load_candidate
from campaigns.harness.problem import read_folder
from campaigns.harness.processes import children
from campaigns.harness.request import CandidateSource, EvaluationRequest

from .conftest import CENTRE, named, needs_sandbox, request_for

pytestmark = needs_sandbox


def with_file(name: str, text: str, **changes: object) -> EvaluationRequest:
    files = {**read_folder(CENTRE), name: text}
    return EvaluationRequest(
        problem_name="centre", problem_files=files, candidate=named("faster.cpp"), mode="check", **changes
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("reference.py", "def reference(inputs, axes):\n    return {'z': inputs['x']}\n", "names the outputs"),
        ("reference.py", "def reference(inputs, axes):\n    return {'y': inputs['x'][:, :1]}\n", "problem.toml says"),
        ("reference.py", "import nowhere\ndef reference(inputs, axes): ...\n", "nowhere"),
        ("inputs.py", "def make_inputs(axes, generator, device, dtype):\n    return {}\n", "names the inputs"),
        (
            "inputs.py",
            "import os\ndef make_inputs(axes, generator, device, dtype):\n    os._exit(3)\n",
            "exit status 3",
        ),
        ("baselines/eager.py", "def run(x, w, y):\n    raise OSError('broken')\n", "broken"),
        ("problem.toml", "name = 1", "problem.toml"),
        ("problem.toml", "x = " + "[" * 3000 + "]" * 3000, "problem.toml"),
    ],
)
def test_a_broken_problem_is_no_measurement_and_not_the_candidate(name: str, text: str, told: str):
    report = evaluator.evaluate(with_file(name, text))

    assert report.outcome == "infrastructure"
    assert told in report.summary
    assert report.speedup is None


def test_the_next_evaluation_after_a_broken_one_is_well():
    text = "def reference(inputs, axes):\n    raise KeyError('lost')\n"
    report = evaluator.evaluate(with_file("reference.py", text))

    assert (report.outcome, report.speedup) == ("infrastructure", None)
    assert "lost" in report.summary
    assert evaluator.evaluate(request_for(named("faster.cpp"), "check")).outcome == "measured"


def test_a_reference_process_that_dies_between_evaluations_is_started_again():
    assert evaluator.evaluate(request_for(named("faster.cpp"), "check")).outcome == "measured"
    (bench,) = evaluator._benches.values()
    os.kill(bench.reference.pid, signal.SIGKILL)
    os.kill(bench.baseline.channel.pid, signal.SIGKILL)
    bench.reference.started.process.wait()
    bench.baseline.channel.started.process.wait()

    assert evaluator.evaluate(request_for(named("faster.cpp"), "check")).outcome == "measured"


def test_a_reference_process_that_dies_in_the_middle_is_no_measurement():
    def kill(stage: str, detail: str) -> None:
        if "workload 2" in detail:
            (bench,) = evaluator._benches.values()
            os.kill(bench.reference.pid, signal.SIGKILL)

    report = evaluator.evaluate(request_for(named("faster.cpp"), "check"), progress=kill)

    assert report.outcome == "infrastructure"
    assert "reference process" in report.summary


def test_an_incumbent_that_crashes_is_not_the_candidates_fault():
    report = evaluator.evaluate(request_for(named("faster.cpp"), incumbent=named("segfault.cpp")))

    assert report.outcome == "infrastructure"
    assert "incumbent" in report.summary


def test_an_incumbent_that_does_not_build_is_not_the_candidates_fault():
    report = evaluator.evaluate(request_for(named("faster.cpp"), incumbent=named("does_not_build.cpp")))

    assert report.outcome == "infrastructure"
    assert "incumbent does not build" in report.summary


def test_a_backend_that_is_not_here_says_what_there_is():
    report = evaluator.evaluate(request_for(CandidateSource(backend="fortran", files={"a.f": ""})))

    assert report.outcome == "build_failed"
    assert "cpp, torch" in report.summary


def test_an_unknown_baseline_is_named():
    request = request_for(load_candidate(CENTRE / "start" / "kernel.cpp"), "check", baseline="none")

    report = evaluator.evaluate(request)

    assert report.outcome == "infrastructure"
    assert "no baseline 'none'" in report.summary


def test_a_time_limit_for_the_whole_is_kept():
    report = evaluator.evaluate(request_for(named("slower.cpp"), time_limit_s=0.5))

    assert report.outcome == "timed_out"
    assert "limit of 0 s" in report.summary or "ended" in report.summary


@pytest.mark.parametrize("made", ["inputs['x']", "inputs['x'] * float('nan')"], ids=["wrong", "not finite"])
def test_where_the_baseline_is_wrong_too_the_problem_is_to_blame(made: str):
    report = evaluator.evaluate(
        with_file("reference.py", f"def reference(inputs, axes):\n    return {{'y': {made}}}\n")
    )

    assert report.outcome == "infrastructure"
    assert "neither the candidate nor the baseline" in report.summary


def test_a_candidate_that_somebody_kills_is_tried_once_more():
    """A host without memory kills, too: that is no verdict on the candidate. Who ends so twice does it by itself."""
    begun: list[str] = []

    def kill_the_first(stage: str, detail: str) -> None:
        if stage == "correctness" and detail.startswith("workload 2"):
            begun.append(detail)
            if len(begun) == 1:
                for pid in running("run_cpp"):
                    os.kill(pid, signal.SIGKILL)

    report = evaluator.evaluate(request_for(named("faster.cpp"), "check"), kill_the_first)

    assert (report.outcome, len(begun)) == ("measured", 2)


def test_a_fault_of_the_harness_itself_is_in_the_report(monkeypatch):
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("campaigns.harness.place.device_for", full)
    report = evaluator.evaluate(request_for(named("faster.cpp")))

    assert report.outcome == "infrastructure"
    assert "No space left on device" in report.summary


def running(role: str) -> list[int]:
    """The processes below this one that play a role in a sandbox."""
    found, todo = [], [os.getpid()]
    while todo:
        for pid in children(todo.pop()):
            todo.append(pid)
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
                if role.encode() in words and b"bwrap" not in words.partition(b"\0")[0]:
                    found.append(pid)
    return found
