from __future__ import annotations

import math

import numpy as np
import pytest

from campaigns.harness.report import Ratio
from campaigns.scenarios import waterfall
from campaigns.scenarios.parity import joined, parity

from .kernels import kernel


def band(value, width=0.0):
    return Ratio(value=value, lo=value - width, hi=value + width)


def fine():
    return parity(np.eye(4)[None], np.eye(4)[None], 1e-4)


def stage(gain, part, speedup=None):
    made = kernel("rmsnorm", {"kernel.cpp": ""}, speedup=speedup)
    return waterfall.stage(made, 100 / gain.value, 100.0, gain, gain, part, fine())


def test_the_ceiling_is_amdahls():
    assert waterfall.amdahl(0.5, 2.0) == pytest.approx(4 / 3)
    assert waterfall.amdahl(0.5) == 2.0
    assert waterfall.amdahl(0.0) == 1.0
    assert math.isfinite(waterfall.amdahl(1.0))


def test_a_gain_below_its_ceiling_is_believed():
    found = stage(band(1.2, 0.01), band(0.3, 0.01), band(3.0, 0.1))
    assert (found.flag, found.note) == ("", "")
    assert found.ceiling == pytest.approx(1.25)
    assert found.limit == pytest.approx(1 / 0.7)


def test_a_gain_above_what_leaving_the_operator_out_gives_is_flagged():
    found = stage(band(1.6, 0.05), band(0.3, 0.02))
    assert "more than leaving rmsnorm out altogether would give" in found.flag


def test_a_gain_that_may_lie_below_the_limit_is_not_flagged():
    assert stage(band(1.45, 0.1), band(0.3, 0.02)).flag == ""
    assert stage(band(1.6, 0.05), band(0.3, 0.12)).flag == ""


def test_a_gain_above_the_operators_own_speed_up_is_noted():
    assert "explains" in stage(band(1.35, 0.01), band(0.3, 0.01), band(1.5, 0.05)).note


def test_rounds_are_compared_in_pairs_and_disturbed_ones_are_left_out():
    drifting = [100.0, 200.0, 400.0, 800.0, 100.0, 100.0, 300.0]
    times = {"a": drifting, "b": [t / 2 for t in drifting[:-1]] + [math.nan]}
    found = waterfall.ratio(times, "a", "b", 0.0)
    assert (found.value, found.lo, found.hi) == pytest.approx((2.0, 2.0, 2.0))


def test_the_share_of_an_operator_is_what_leaving_it_out_saves():
    times = {"step": [100.0] * 6, "without": [75.0] * 6}
    assert waterfall.share(times, "step", "without", 0.0).value == pytest.approx(0.25)
    assert waterfall.share(times, "without", "step", 0.0).value == 0.0


def test_two_processes_of_the_same_code_that_lie_apart_widen_every_band():
    assert waterfall.process_sd(band(1.10)) > waterfall.process_sd(band(1.0)) > 0


@pytest.mark.parametrize(("gain", "holds", "why"), [
    (band(1.03, 0.01), True, "1.030× together"),
    (band(1.01, 0.02), False, "not told apart together either"),
    (band(0.97, 0.01), False, "slower together"),
    (None, False, "none of them was right"),
])  # fmt: skip
def test_a_combination_holds_when_it_is_clear_of_the_step_before(gain, holds, why):
    found = waterfall.trial([kernel("rmsnorm", {"kernel.cpp": ""})], gain)
    assert (found.holds, why in found.why) == (holds, True)


def logits(*rows):
    return np.array(rows, dtype=np.float64)[None]


def test_another_token_is_no_parity():
    found = parity(logits([1.0, 1.01, 0]), logits([1.01, 1.0, 0]), 1e-3)
    assert not found.passed
    assert "another token than the reference's in 1 of 1 steps" in found.detail


def test_a_tie_of_the_reference_itself_is_counted_apart():
    found = parity(logits([1.0, 1.0001, 0]), logits([1.0001, 1.0, 0]), 1e-3)
    assert found.passed
    assert (found.agreed, found.ties) == (0, 1)


def test_an_error_above_the_tolerance_is_no_parity_although_the_token_is_right():
    assert not parity(logits([2.0, 0.5, 0.1]), logits([2.0, 0.4, 0.1]), 1e-2).passed


def test_nan_is_no_parity():
    assert not parity(logits([math.nan, 0.4, 0.1]), logits([2.0, 0.4, 0.1]), 1e-2).passed


def test_of_several_draws_all_must_pass():
    good, bad = fine(), parity(logits([0.0, 1.0]), logits([1.0, 0.0]), 1e-3)
    assert not joined([good, bad, good]).passed
    assert joined([good, good]).steps == 8
