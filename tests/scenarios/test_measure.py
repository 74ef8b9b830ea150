"""Real measurements of the tiny scenario, in sandboxes."""

from __future__ import annotations

import threading

import pytest

from campaigns.harness import sandbox
from campaigns.harness.errors import Infrastructure, Stopped
from campaigns.harness.gpu import devices
from campaigns.scenarios.measure import measure

from .kernels import ONE_STEP, kernel, mla_decode, request, rmsnorm, with_axes

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sandbox.available(), reason="no bubblewrap sandbox here")]

SCALED_NORM = """
calls = 0
def run(x, weight, y):
    global calls
    calls += 1
    factor = {factor} if calls % 7 == 0 else 1.0  # of a step's seven norms the last one, which the head reads
    y.copy_(x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight * factor)
"""
SCALED_HEAD = """
def run(x, head, logits):
    logits.copy_(x @ head.T * {factor})
"""


def patient(told):
    """A measurement of what must come out; a machine that is too busy to measure anything is not the code's fault."""
    try:
        return measure(told)
    except Infrastructure as error:
        if "too busy" in str(error):
            pytest.skip(str(error))
        raise


def scaled(operator, text, factor):
    return kernel(operator, {"kernel.py": text.format(factor=factor)}, "torch", id=f"{operator}{factor}")


def test_two_kernels_compound_and_the_sum_is_explained():
    norm = rmsnorm()
    report = patient(request(mla_decode(), norm, tried=(norm.id,)))
    assert report.trial.gain == report.stages[1].gain
    assert report.trial.holds == (report.stages[1].gain.lo > 1)
    assert report.refused == ""
    assert [s.operator for s in report.stages] == ["mla_decode", "rmsnorm"]
    first, second = report.stages
    assert second.over_base.lo > 1
    assert second.over_base.value > first.over_base.value
    assert second.over_base.value == pytest.approx(first.gain.value * second.gain.value, rel=0.1)
    assert all(s.parity.passed and s.parity.agreed == s.parity.steps for s in report.stages)
    assert all(0 < s.share.value < 1 and not s.flag for s in report.stages)
    assert second.over_base.lo < first.limit * second.limit
    assert report.floor_us is not None
    assert report.floor_us < report.now_us < report.base_us


def test_a_stack_that_drifts_although_each_leg_passes_is_refused():
    """Each scales the logits by two parts in 10,000: 1.5e-4 of error where 2e-4 are allowed, and 3e-4 together."""
    legs = [scaled("rmsnorm", SCALED_NORM, 1 + 2e-4), scaled("lm_head", SCALED_HEAD, 1 + 2e-4)]
    report = patient(with_axes(request(*legs, rounds=6), ONE_STEP))
    assert report.left_out == []
    assert [s.operator for s in report.stages] == ["rmsnorm"]
    assert "are right one by one, and not together" in report.refused


def test_what_is_wrong_crashes_or_does_not_build_is_left_out_with_the_reason_and_the_rest_is_measured():
    wrong = scaled("rmsnorm", SCALED_NORM, 1.01)
    crash = kernel("mla_decode", {"kernel.cpp": 'extern "C" void run() { *(volatile int*)8 = 1; }'}, id="crash")
    broken = kernel("rmsnorm", {"kernel.cpp": "int x"}, id="broken")
    greedy = kernel("rmsnorm", {"kernel.py": "def run(x, weight, y):\n    weight.zero_()\n"}, "torch", id="greedy")
    unknown = kernel("gelu", {"kernel.cpp": "int x;"}, id="unknown")
    report = patient(with_axes(request(wrong, crash, broken, greedy, unknown, rmsnorm(), rounds=6), ONE_STEP))
    why = {item.kernel: item.why for item in report.left_out}
    assert "values are wrong" in why[wrong.id]
    assert "SIGSEGV" in why["crash"]
    assert "error:" in why["broken"]
    assert "wrote to an input" in why["greedy"]
    assert why["unknown"] == "the scenario has no operator gelu"
    assert [s.operator for s in report.stages] == ["rmsnorm"]


def test_without_kernels_it_measures_the_baseline_against_itself():
    report = patient(with_axes(request(rounds=10), ONE_STEP))
    assert report.stages == []
    assert report.now_us == report.base_us
    assert 0.5 < report.noise.value < 2


def test_it_can_be_stopped():
    asked = threading.Event()

    def stop():
        asked.set()
        return True

    with pytest.raises(Stopped):
        measure(request(rmsnorm()), should_stop=stop)
    assert asked.is_set()


def test_the_faster_of_eager_and_compiled_is_the_baseline():
    """One layer and one step: torch.compile takes its time for each operator that it sees."""
    told = with_axes(request(rounds=6, draws=1, bases=("eager", "compile")), "steps = 1, batch = 1, layers = 1")
    report = patient(told)
    times = {b.name: b.time_us for b in report.bases}
    assert set(times) == {"eager", "compile"}
    assert report.base == min(times, key=times.get)
    assert all(b.parity.passed for b in report.bases)


@pytest.mark.skipif(bool(devices.visible()), reason="there is a GPU here")
def test_a_gpu_scenario_says_that_it_needs_a_gpu():
    from campaigns.scenarios import catalogue
    from campaigns.scenarios.request import StackRequest

    files = catalogue.find("toy_deepseek").problem.files
    with pytest.raises(Infrastructure, match="no NVIDIA GPU"):
        measure(StackRequest(scenario="toy_deepseek", files=files, kernels=[]))
