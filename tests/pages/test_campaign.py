from __future__ import annotations

import json
import re

import pytest
from django.utils import timezone

from campaigns import actions, feed
from campaigns.models import Attempt, EvaluatorHost, Event
from tests.factories import make_attempt, make_campaign, person


def points(page: str) -> list:
    return json.loads(re.search(r'<script id="points" type="application/json">(.*?)</script>', page, re.S)[1])


def test_it_sends_an_outsider_to_the_login(outsider, campaign):
    assert outsider.get(campaign.get_absolute_url()).status_code == 302


def test_one_that_is_not_there_is_not_found(owner):
    assert owner.get("/campaigns/999/").status_code == 404


def test_the_idea_stands_in_the_persons_words(owner):
    campaign = make_campaign(idea="This is <b>dumb</b>: read it once.")
    assert "“This is &lt;b&gt;dumb&lt;/b&gt;: read it once.”" in owner.get(campaign.get_absolute_url()).content.decode()


def test_without_a_kept_one_there_is_no_best(owner, campaign):
    make_attempt(campaign, "reverted")
    context = owner.get(campaign.get_absolute_url()).context
    assert context["best"] is None
    assert context["floor_share"] is None


def test_a_kept_one_that_a_person_rejected_is_no_winner(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    actions.reject(attempt, person("owner"), seen=0, kind="fragile", reason="Too clever.")
    response = owner.get(campaign.get_absolute_url())
    assert response.context["best"] is None
    assert "▲" not in row(response, 1)
    assert points(response.content.decode())[0]["kind"] == "rejected"


def row(response, number: int) -> str:
    return re.search(rf'<tbody id="attempt-{number}".*?</tbody>', response.content.decode(), re.S)[0]


@pytest.mark.parametrize("verdict", ["incorrect", "build_failed", "launch_failed", "timed_out", "no_measurement"])
def test_a_failed_one_has_neither_the_winners_mark_nor_a_number(owner, campaign, verdict):
    make_attempt(campaign, verdict, speedup=7.5)
    response = owner.get(campaign.get_absolute_url())
    shown = row(response, 1)
    assert "▲" not in shown
    assert "not measured" in shown or verdict == "no_measurement"
    assert points(response.content.decode())[0]["s"] is None


def test_text_from_outside_is_escaped_everywhere(owner, campaign):
    evil = "<script>alert(1)</script>"
    make_attempt(campaign, "reverted", title=evil, reason=evil, proposer=evil)
    page = owner.get(campaign.get_absolute_url()).content.decode()
    assert evil not in page


def test_the_keep_rate_counts_what_was_judged(owner, campaign):
    for verdict in ("kept", "reverted", "incorrect", "reverted"):
        make_attempt(campaign, verdict)
    assert owner.get(campaign.get_absolute_url()).context["keep_rate"] is None, "four say nothing of a rate"
    for verdict in ("kept", "reverted", "incorrect", "reverted"):
        make_attempt(campaign, verdict)
    make_attempt(campaign)
    assert owner.get(campaign.get_absolute_url()).context["keep_rate"] == 0.25


def test_costs_are_summed_and_unknown_without_a_model(owner, campaign):
    make_attempt(campaign, "reverted")
    assert owner.get(campaign.get_absolute_url()).context["spent"]["cost_usd"] is None
    for _ in range(2):
        make_attempt(campaign, "reverted", usage={"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.25})
    assert owner.get(campaign.get_absolute_url()).context["spent"] == {"tokens": 240, "cost_usd": 0.5}


def test_each_idea_has_its_own_tally(owner, campaign):
    other = actions.add_idea(campaign, person("teammate"), "Another")
    make_attempt(campaign, "kept", idea=other)
    make_attempt(campaign, "reverted", idea=other)
    tallies = {i.text: (i.n_tries, i.n_kept) for i in owner.get(campaign.get_absolute_url()).context["ideas"]}
    assert tallies == {"Read each row once.": (0, 0), "Another": (2, 1)}


def test_it_shows_the_newest_and_offers_the_earlier(owner, campaign):
    Attempt.objects.bulk_create(
        Attempt(campaign=campaign, number=n, verdict="reverted", phase="judged") for n in range(1, 251)
    )
    response = owner.get(campaign.get_absolute_url())
    assert [a.number for a in response.context["attempts"]] == list(range(250, 50, -1))
    rest = owner.get(
        f"/campaigns/{campaign.pk}/earlier?before={response.context['earlier']}", headers={"HX-Request": "true"}
    )
    assert [a.number for a in rest.context["attempts"]] == list(range(50, 0, -1))
    assert rest.context["earlier"] is None


def test_a_page_with_many_attempts_needs_few_queries(owner, campaign, django_assert_max_num_queries):
    for _ in range(20):
        make_attempt(campaign, "flagged")
    with django_assert_max_num_queries(25):
        owner.get(campaign.get_absolute_url())


def test_the_page_says_which_event_it_has(owner, campaign):
    make_attempt(campaign, "reverted")
    since = Event.objects.filter(campaign=campaign).count()
    assert owner.get(campaign.get_absolute_url()).context["since"] == since


def test_an_update_holds_the_rows_and_parts_that_the_page_has(owner, campaign):
    page = owner.get(campaign.get_absolute_url())
    make_attempt(campaign, "kept", title="a better one")
    update = json.loads(feed.render(campaign.pk, page.context["since"]).text)
    assert len(update["rows"]) == 1
    assert "a better one" in update["rows"][0]
    ids = set(re.findall(r'id="(live-[a-z]+)"', update["parts"]))
    assert ids == {"live-state", "live-strip", "live-ideas", "live-notes", "live-hosts"}
    assert all(f'id="{name}"' in page.content.decode() for name in ids)
    assert update["points"][0]["kind"] == "kept"


def test_a_campaign_that_nobody_can_measure_says_so_until_somebody_joins(owner):
    campaign = make_campaign(hardware="h200", state="running", started_at=timezone.now())
    told = "No evaluator for <b>h200</b> has been heard"
    assert told in owner.get(campaign.get_absolute_url()).content.decode()
    EvaluatorHost.objects.create(queue="gpu.h200", name="one", kind="NVIDIA H200")
    assert told not in owner.get(campaign.get_absolute_url()).content.decode()


def test_an_updated_row_is_the_row_of_a_fresh_page(owner, campaign):
    make_attempt(campaign, "flagged")
    update = json.loads(feed.render(campaign.pk, 0).text)
    assert update["rows"][0].strip() == row(owner.get(campaign.get_absolute_url()), 1).strip()
