"""Three people: the owner of a campaign, a teammate, and an outsider who is not signed in."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import make_campaign, person


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    """Nothing listens in these tests; what is sent after a commit must find that out at once."""
    monkeypatch.setattr("campaigns.notify.there_is_more", lambda *args: None)


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(person(name))
    return client


@pytest.fixture
def owner(db) -> Client:
    return signed_in("owner")


@pytest.fixture
def teammate(db) -> Client:
    return signed_in("teammate")


@pytest.fixture
def outsider(db) -> Client:
    return Client()


@pytest.fixture
def campaign(db):
    return make_campaign()
