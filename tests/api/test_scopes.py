from __future__ import annotations

import pytest
from django.test import Client

from campaigns.api.rest import api
from campaigns.models import Attempt, Campaign
from tests.factories import make_attempt, make_campaign, person

from .conftest import Agent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]
KERNEL = {"files": {"kernel.cpp": "int x;"}, "title": "x"}


def test_a_reader_submits_and_creates_nothing():
    campaign = make_campaign(agent="external")
    reader = Agent("read")
    for path, body in (
        (f"/campaigns/{campaign.pk}/attempts", KERNEL),
        (f"/campaigns/{campaign.pk}/nothing-more", {"reason": "x"}),
        ("/campaigns", {"problem": "rmsnorm", "idea": "x"}),
    ):
        answer = reader.post(path, body)
        assert answer.status_code == 403, path
        assert "scope" in answer.json()["error"]
        assert "It has: read" in answer.json()["hint"]
    assert Attempt.objects.count() == 0
    assert Campaign.objects.count() == 1


def test_a_submitter_without_read_sees_nothing():
    campaign = make_campaign(agent="external")
    for path in ("/campaigns", f"/campaigns/{campaign.pk}/task", "/problems", "/profiles"):
        assert Agent("submit").get(path).status_code == 403, path


def test_a_token_for_one_campaign_does_not_reach_another():
    mine, other = make_campaign(agent="external"), make_campaign(agent="external")
    make_attempt(other, "kept")
    agent = Agent("read", "submit", campaign=mine)
    assert [c["id"] for c in agent.get("/campaigns").json()["campaigns"]] == [mine.pk]
    for tail in ("", "/task", "/attempts", "/attempts/1", "/attempts/1/report", "/attempts/1/candidate"):
        assert agent.get(f"/campaigns/{other.pk}{tail}").status_code == 404, tail
    assert agent.post(f"/campaigns/{other.pk}/attempts", KERNEL).status_code == 404


def test_no_operation_decides_anything():
    """Approving, rejecting, dismissing and steering are not in the API at all; and the pages take no token."""
    words = ("approve", "reject", "dismiss", "confirm", "steer", "review", "decide")
    paths = [path for path in api.get_openapi_schema()["paths"] if any(word in path for word in words)]
    assert paths == []
    attempt = make_attempt(make_campaign(), "kept")
    agent = Agent("read", "submit", "create", owner=person("owner"))
    answer = agent.client.post(f"/review/{attempt.pk}/approve", {"seen": 0, "sha256": attempt.signed_sha256()})
    assert answer.status_code in (302, 401)
    attempt.refresh_from_db()
    assert attempt.decision == ""


def test_a_session_opens_nothing_in_the_api():
    client = Client()
    client.force_login(person("owner"))
    assert client.get("/api/campaigns").status_code == 401


def test_a_token_in_the_address_opens_nothing():
    secret = Agent("read").secret
    assert Client().get(f"/api/campaigns?token={secret}&access_token={secret}").status_code == 401


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer arw_wrong", "Bearer \udcff"])
def test_without_a_valid_token_it_says_how_to_get_one(header):
    answer = Client(headers={"Authorization": header} if header else {}).get("/api/campaigns")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert set(answer.json()) == {"error", "hint"}
