from __future__ import annotations

from datetime import timedelta

import pytest

from campaigns.presenters.standing import count_words, range_words
from campaigns.templatetags import measures


@pytest.mark.parametrize("missing", [None, "", float("nan"), float("inf"), "x"])
def test_what_is_no_number_is_not_measured(missing):
    for show in (measures.times, measures.micros, measures.digits, measures.percent):
        assert show(missing) == "not measured"
    assert measures.plus_minus(missing) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.314, "2.31×"), (0.0431, "0.043×"), (12.34, "12.3×"), (4321.0, "4,321×"), (1.0, "1.00×"), (0, "0.00×")],
)
def test_a_speed_up_is_short_and_has_its_sign(value, shown):
    assert measures.times(value) == shown


@pytest.mark.parametrize(
    ("us", "shown"), [(5.62, "5.62 µs"), (999.4, "999 µs"), (1320, "1.32 ms"), (61900, "61.9 ms"), (2.1e6, "2.10 s")]
)
def test_a_time_has_the_unit_that_fits(us, shown):
    assert measures.micros(us).replace("\u00a0", " ") == shown


def test_a_duration_reads_as_a_clock():
    assert [measures.clock(t) for t in (14, timedelta(seconds=723), 3723, None)] == ["0:14", "12:03", "1:02:03", ""]


def test_a_range_reads_as_an_engineer_writes_it():
    assert range_words({"axis": "tokens", "lo": 1024, "hi": 98304}) == "1k ≤ tokens ≤ 96k"
    assert range_words({"axis": "tokens", "lo": 1218, "hi": 1218}) == "tokens = 1,218"
    assert range_words({"axis": "tokens", "hi": 6001}) == "tokens ≤ 6,001"
    assert range_words("everything") == range_words({"axis": "t"}) == ""


def test_a_count_is_shortened_only_where_that_is_exact():
    assert [count_words(n) for n in (777, 1024, 1000, 131072, 1 << 20, True)] == [
        "777",
        "1k",
        "1,000",
        "128k",
        "1M",
        "True",
    ]
