from __future__ import annotations

from tests.factories import make_campaign


def test_it_sends_an_outsider_to_the_login(outsider):
    assert outsider.get("/campaigns/").status_code == 302


def test_an_empty_list_offers_a_new_campaign(owner):
    assert "No campaign yet" in owner.get("/campaigns/").content.decode()


def test_a_teammate_sees_the_campaigns_of_others(teammate, campaign):
    assert campaign.title in teammate.get("/campaigns/").content.decode()


def test_it_is_filtered_by_state(owner):
    make_campaign(title="one that runs")
    make_campaign(title="one that ended", state="finished")
    page = owner.get("/campaigns/?state=finished").content.decode()
    assert "one that ended" in page
    assert "one that runs" not in page


def test_nonsense_in_the_address_is_no_error(owner, campaign):
    assert owner.get("/campaigns/?state=zzz&page=-7").status_code == 200
