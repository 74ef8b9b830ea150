from __future__ import annotations

import numpy as np
import pytest

from campaigns.harness.gate import clears, hopeless, noise_band
from campaigns.harness.report import Ratio
from campaigns.harness.statistics import centre_of, combine, signed_rank_depth


@pytest.mark.parametrize(("n", "depth"), [(5, 0), (6, 1), (8, 4), (10, 9), (16, 30)])
def test_the_depth_is_that_of_the_tables(n: int, depth: int):
    # Hollander & Wolfe, table A.4: the largest d with P(T+ < d) <= 0.025.
    assert signed_rank_depth(n) == depth


@pytest.mark.parametrize("n", [6, 8, 12, 16])
def test_the_interval_covers_the_truth_as_often_as_it_says(n: int):
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        logs = 0.1 + random.standard_normal(n) * 0.05
        found = centre_of(logs)
        covered += found.lo <= 0.1 <= found.hi

    assert covered / 2000 >= 0.94


def test_one_wild_round_does_not_move_the_estimate():
    logs = [0.10, 0.11, 0.09, 0.10, 0.105, 0.095, 0.1, 9.0]

    assert centre_of(logs).centre == pytest.approx(0.10, abs=0.01)


def test_many_workloads_narrow_the_whole():
    one = centre_of([0.0, 0.1, -0.1, 0.05, -0.05, 0.02])
    whole = combine([one] * 4)

    assert whole.hi - whole.lo == pytest.approx((one.hi - one.lo) / 2)


def test_what_repetition_cannot_show_widens():
    narrow = centre_of([0.1] * 6)

    assert narrow.widened(0.01).hi == pytest.approx(0.1 + 0.0196, abs=1e-4)


def ratio(lo: float, hi: float) -> Ratio:
    return Ratio(value=(lo + hi) / 2, lo=lo, hi=hi)


def test_a_gain_must_clear_the_noise_band():
    assert clears(ratio(1.05, 1.2), ratio(0.97, 1.02))
    assert not clears(ratio(1.02, 1.2), ratio(0.97, 1.02))
    assert not clears(None, None)


def test_no_noise_band_is_believed_below_one_per_cent():
    assert noise_band(ratio(0.9999, 1.0001)) == 0.01
    assert noise_band(ratio(0.95, 1.01)) == pytest.approx(0.05)


def test_more_rounds_are_of_no_use_when_the_upper_bound_is_inside_the_noise():
    assert hopeless(ratio(0.99, 1.005), None)
    assert not hopeless(ratio(0.99, 1.2), None)


def test_a_band_that_one_disturbed_round_made_wide_does_not_end_a_comparison():
    """As measured on an H200: a gain of 1 %, six rounds, and an A/A pair with one round beside the others."""
    over, noise = Ratio(value=1.0097, lo=1.0059, hi=1.0125), Ratio(value=1.0022, lo=0.9969, hi=1.0143)
    assert not clears(over, noise, floor=0.0025)
    assert not hopeless(over, noise, floor=0.0025)
    same, quiet = Ratio(value=1.0003, lo=0.9969, hi=1.0037), Ratio(value=0.9991, lo=0.9951, hi=1.0031)
    assert hopeless(same, quiet, floor=0.0025)
