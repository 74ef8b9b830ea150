from __future__ import annotations

import msgspec
import pytest

from campaigns.presenters.roofline import roofline
from tests.factories import make_attempt, make_campaign, make_report

pytestmark = pytest.mark.django_db


def made(verdict: str = "kept", **peaks: float):
    campaign = make_campaign()
    report = make_report(campaign, verdict, [])
    report = msgspec.structs.replace(report, host=msgspec.structs.replace(report.host, peaks=peaks))
    attempt = make_attempt(campaign, verdict, report=report)
    return roofline(attempt, list(attempt.measurements.all()), report)


def test_a_dot_is_operations_a_second_over_operations_a_byte():
    found = made(copy_bytes_per_s=1e10, float32_flop_per_s=5e10)
    dot = next(dot for dot in found["dots"] if dot["name"] == "cpu_r64_h1024")
    flop, moved = 4 * 64 * 1024, (2 * 64 * 1024 + 1024) * 4
    assert (dot["x"], dot["y"]) == (flop / moved, flop / 100e-6)
    assert dot["before"] == flop / 113e-6
    assert (found["bandwidths"], found["roofs"], found["why"]) == ([1e10], {"float32": 5e10}, "")


def test_a_peak_that_was_not_measured_is_said_and_not_invented():
    found = made()
    assert (found["bandwidths"], found["roofs"]) == ([], {})
    assert "none is invented" in found["why"]
    assert "only the slope" in made(read_bytes_per_s=1e10)["why"]


def test_what_fits_a_cache_has_a_roof_of_its_own():
    found = made(copy_at_1048576_bytes_per_s=5e10, copy_at_1073741824_bytes_per_s=1e10, float32_flop_per_s=5e10)
    assert found["bandwidths"] == [1e10, 5e10] or found["bandwidths"] == [5e10]
    assert {dot["bandwidth"] for dot in found["dots"]} == set(found["bandwidths"])


def test_an_incorrect_one_has_no_dot():
    assert made("incorrect") is None
