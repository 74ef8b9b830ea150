from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError as Away

from campaigns.models import Campaign, Idea, Steering
from tests.factories import make_campaign

HTMX = {"HX-Request": "true"}


def test_an_outsider_changes_nothing(outsider, campaign):
    assert outsider.post(f"/campaigns/{campaign.pk}/pause").status_code == 302
    campaign.refresh_from_db()
    assert campaign.state == "running"


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "stop"])
def test_it_is_post_only(owner, campaign, verb):
    assert owner.get(f"/campaigns/{campaign.pk}/{verb}").status_code == 405


def test_a_teammate_pauses_and_resumes(teammate, campaign):
    teammate.post(f"/campaigns/{campaign.pk}/pause")
    campaign.refresh_from_db()
    assert campaign.state == "paused"
    teammate.post(f"/campaigns/{campaign.pk}/resume")
    campaign.refresh_from_db()
    assert campaign.state == "running"


def test_a_refusal_is_said_as_it_is(owner):
    campaign = make_campaign(state="finished")
    response = owner.post(f"/campaigns/{campaign.pk}/pause", headers=HTMX)
    assert response.status_code == 409
    assert "only a running one can be paused" in response.content.decode()


def test_without_scripts_the_answer_is_the_page_with_the_sentence_on_top(owner, campaign):
    response = owner.post(f"/campaigns/{campaign.pk}/steer", {"text": "Look at the second pass."}, follow=True)
    assert "Noted." in response.content.decode()
    assert Steering.objects.get().text == "Look at the second pass."


def test_an_empty_note_is_refused(owner, campaign):
    assert owner.post(f"/campaigns/{campaign.pk}/steer", {"text": "  "}, headers=HTMX).status_code == 409
    assert not Steering.objects.exists()


def test_an_idea_is_added_and_struck(owner, campaign):
    owner.post(f"/campaigns/{campaign.pk}/ideas", {"text": "Fuse it."})
    idea = Idea.objects.get(text="Fuse it.")
    owner.post(f"/campaigns/{campaign.pk}/ideas/strike", {"idea": idea.pk})
    idea.refresh_from_db()
    assert idea.struck_at


@pytest.mark.parametrize("number", ["", "x", "-1", "٣", "999999"])
def test_an_idea_that_is_not_there_is_not_found(owner, campaign, number):
    assert owner.post(f"/campaigns/{campaign.pk}/ideas/strike", {"idea": number}).status_code == 404


def test_an_idea_of_another_campaign_is_not_struck(owner, campaign):
    other = make_campaign().ideas.get()
    assert owner.post(f"/campaigns/{campaign.pk}/ideas/strike", {"idea": other.pk}).status_code == 404


def test_when_the_broker_is_away_the_change_stands_and_is_said(
    owner, campaign, monkeypatch, django_capture_on_commit_callbacks
):
    def away(campaign_id: int) -> None:
        raise Away("no broker")

    monkeypatch.setattr("campaigns.dispatch.advance", away)
    Campaign.objects.filter(pk=campaign.pk).update(state="paused")
    from campaigns.views.replies import BROKER_AWAY, attempted

    def resume() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            from campaigns import actions

            actions.resume(campaign, None)

    assert attempted(resume) == (BROKER_AWAY, True)
    campaign.refresh_from_db()
    assert campaign.state == "running"


def test_a_number_of_any_length_is_no_fault(owner, campaign):
    assert owner.post(f"/campaigns/{campaign.pk}/ideas/strike", {"idea": "9" * 5000}).status_code == 404
    assert owner.post("/stack/tiny/together", {"attempt": "9" * 5000}).status_code == 302
