from __future__ import annotations

import pytest

from profiling.importers.kineto_times import nanoseconds


@pytest.mark.parametrize(
    ("literal", "ns"),
    [
        (b"1683564901548726", 1683564901548726_000),
        (b"5142910666487.086", 5142910666487_086),
        (b"1712195495505543.2", 1712195495505543_200),
        (b"6869181218027.51", 6869181218027_510),
        (b'"5142910666487.086"', 5142910666487_086),
        (b"-0.5", -500),
        (b"1.5e3", 1_500_000),
        (b"0", 0),
    ],
)
def test_microseconds_become_nanoseconds_digit_by_digit(literal: bytes, ns: int) -> None:
    assert nanoseconds(literal) == ns


def test_a_float_would_have_lost_what_is_kept() -> None:
    assert nanoseconds(b"1712195495505543.213") == 1712195495505543_213
    assert round(float("1712195495505543.213") * 1000) != 1712195495505543_213


def test_more_than_three_decimals_are_rounded() -> None:
    assert nanoseconds(b"1.23456") == 1235
    assert nanoseconds(b"1.0006") == 1001


@pytest.mark.parametrize("literal", [b"", b'"abc"', b"null", b"true", b"nan", b"1e400", b"99999999999999999999"])
def test_what_is_no_time_is_none(literal: bytes) -> None:
    assert nanoseconds(literal) is None
