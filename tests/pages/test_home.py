from __future__ import annotations

from campaigns import actions
from tests.factories import make_attempt, make_campaign, person


def test_it_sends_an_outsider_to_the_login(outsider):
    assert outsider.get("/").headers["Location"] == "/login?next=/"


def test_an_empty_home_says_what_to_do_next(owner):
    page = owner.get("/").content.decode()
    assert "Nothing here yet" in page
    assert 'href="/campaigns/new"' in page


def test_approvals_stand_oldest_first(owner, campaign):
    first, second = make_attempt(campaign, "kept", title="first"), make_attempt(campaign, "kept", title="second")
    assert list(owner.get("/").context["approvals"]) == [first, second]


def test_what_is_decided_waits_no_more(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    actions.approve(attempt, person("owner"), seen=0, sha256=attempt.signed_sha256())
    assert list(owner.get("/").context["approvals"]) == []


def test_a_flagged_attempt_is_there_until_its_flag_is_decided(owner, campaign):
    attempt = make_attempt(campaign, "flagged")
    assert "output-cache" in owner.get("/").content.decode()
    actions.decide_flag(attempt.flags.get(), person("owner"), state="confirmed", reason="It does cheat.")
    assert list(owner.get("/").context["flagged"]) == []


def test_the_sparkline_ends_at_the_best_that_nobody_turned_down(owner, campaign):
    make_attempt(campaign, "kept", speedup=1.5)
    worse = make_attempt(campaign, "kept", speedup=3.0)
    actions.reject(worse, person("owner"), seen=0, kind="cheat", reason="It reads the old buffer.")
    assert owner.get("/").context["sparks"][campaign.pk]["best"] == 1.5


def test_the_part_that_the_socket_refreshes_comes_without_the_frame(owner):
    make_campaign(title="A running one")
    part = owner.get("/?part=1").content.decode()
    assert "A running one" in part
    assert "<html" not in part


def test_the_number_of_queries_does_not_grow_with_the_campaigns(owner, campaign, django_assert_max_num_queries):
    for _ in range(6):
        make_attempt(make_campaign(), "kept")
    with django_assert_max_num_queries(20):
        owner.get("/")
