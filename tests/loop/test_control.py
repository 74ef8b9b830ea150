from __future__ import annotations

from datetime import timedelta

import pytest

from campaigns import actions, progress
from campaigns.models import Campaign, Event, Phase
from tests.factories import make_attempt, make_campaign, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def campaign(at_broker) -> Campaign:
    return make_campaign()


def test_a_pause_begins_nothing_new_and_its_time_does_not_count(campaign):
    Campaign.objects.filter(pk=campaign.pk).update(resumed_at=campaign.resumed_at - timedelta(seconds=60))
    actions.pause(campaign, person("ada"))
    assert progress.advance(campaign.pk).propose == 0
    assert 60 <= campaign.elapsed().total_seconds() < 62
    actions.resume(campaign, person("ada"))
    assert progress.advance(campaign.pk).propose == 2


def test_it_cannot_be_paused_twice(campaign):
    actions.pause(campaign, None)
    with pytest.raises(actions.ActionError, match="only a running one"):
        actions.pause(campaign, None)


def test_a_stop_drops_what_is_under_way_and_cancels_its_evaluation(campaign, at_broker):
    attempt = make_attempt(campaign, phase=Phase.READY, files=campaign.start_files, backend="cpp")
    progress.send_out(attempt)
    actions.stop(campaign, person("ada"))
    attempt.refresh_from_db()
    assert (campaign.state, attempt.phase) == ("stopped", "dropped")
    assert at_broker.get(f"evaluation:{attempt.ticket}:cancelled")


def test_a_second_stop_says_that_it_has_ended(campaign):
    actions.stop(campaign, None)
    with pytest.raises(actions.ActionError, match="ended already"):
        actions.stop(campaign, None)


def test_ideas_take_turns(campaign):
    first = campaign.ideas.get()
    actions.add_idea(campaign, person("ada"), "Another one.")
    progress.advance(campaign.pk)
    assert campaign.attempts.filter(idea=first).count() == 1
    assert campaign.attempts.count() == 2


def test_events_are_numbered_without_a_gap(campaign):
    actions.steer(campaign, person("ada"), "Leave block sizes alone.")
    progress.advance(campaign.pk)
    seqs = list(Event.objects.filter(campaign=campaign).values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))


def test_advancing_twice_makes_no_more_attempts(campaign):
    progress.advance(campaign.pk)
    progress.advance(campaign.pk)
    assert list(campaign.attempts.values_list("number", flat=True)) == [1, 2]
