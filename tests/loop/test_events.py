from __future__ import annotations

import pytest

from campaigns.models import Event


@pytest.mark.parametrize(
    ("kind", "data", "moves"),
    [
        ("attempt.judged", {"verdict": "kept"}, True),
        ("attempt.judged", {"verdict": "reverted"}, False),
        ("attempt.approved", {}, True),
        ("attempt.signed", {}, True),
        ("attempt.rejected", {}, True),
        ("attempt.proposed", {}, False),
        ("campaign.paused", {}, False),
    ],
)
def test_every_page_is_told_only_of_events_that_move_the_review_queue(kind, data, moves):
    assert Event(kind=kind, data=data).moves_the_queue is moves
