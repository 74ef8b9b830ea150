from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from campaigns.models import ApiToken
from tests.factories import make_campaign, person

from .conftest import Agent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]


def signed_in(name):
    client = Client()
    client.force_login(person(name))
    return client


def test_only_its_hash_is_kept():
    row, secret = ApiToken.issue("laptop", ["read"])
    stored = " ".join(str(value) for value in ApiToken.objects.filter(pk=row.pk).values().get().values())
    assert secret not in stored
    assert row.prefix == secret[:12]
    assert ApiToken.find(secret) == row


@pytest.mark.parametrize(
    "change",
    [
        {"revoked_at": timezone.now()},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_revoked_or_expired_token_opens_nothing(change):
    agent = Agent("read")
    assert agent.get("/whoami").status_code == 200
    ApiToken.objects.filter(pk=agent.row.pk).update(**change)
    assert agent.get("/whoami").status_code == 401


def test_a_token_dies_with_its_owners_account():
    agent = Agent("read", owner=person("leaver"))
    owner = person("leaver")
    owner.is_active = False
    owner.save()
    assert agent.get("/whoami").status_code == 401


def test_its_last_use_is_noted():
    agent = Agent("read")
    agent.get("/whoami")
    agent.row.refresh_from_db()
    assert agent.row.last_used_at is not None


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [("", ["read"], None), ("x", [], None), ("x", ["approve"], None), ("x", ["read"], 0), ("x" * 81, ["read"], None)],
)
def test_a_wrong_wish_makes_no_token(name, scopes, days):
    with pytest.raises(ValueError, match=r"."):
        ApiToken.issue(name, scopes, days=days)
    assert not ApiToken.objects.exists()


def test_a_token_for_one_campaign_cannot_create_others():
    with pytest.raises(ValueError, match="create"):
        ApiToken.issue("x", ["read", "create"], campaign=make_campaign())


def test_the_page_shows_a_new_token_once():
    client = signed_in("owner")
    page = client.post("/tokens/", {"name": "laptop", "scopes": ["read", "submit"], "days": "30"})
    secret = page.context["secret"]
    assert secret in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert secret not in client.get("/tokens/").content.decode()
    assert ApiToken.find(secret).scopes == ["read", "submit"]


def test_a_refused_form_keeps_what_was_typed():
    page = signed_in("owner").post("/tokens/", {"name": "laptop", "scopes": ["read"], "days": "never"})
    assert page.status_code == 422
    assert 'value="laptop"' in page.content.decode()
    assert "whole number" in page.content.decode()


def test_people_see_and_revoke_their_own_tokens_only():
    row, _ = ApiToken.issue("owners own", ["read"], person("owner"))
    teammate = signed_in("teammate")
    assert "owners own" not in teammate.get("/tokens/").content.decode()
    assert teammate.post(f"/tokens/{row.pk}/revoke").status_code == 404
    assert signed_in("owner").post(f"/tokens/{row.pk}/revoke").status_code == 302
    row.refresh_from_db()
    assert row.state() == "revoked"


def test_an_outsider_is_sent_to_sign_in():
    assert Client().get("/tokens/")["Location"].startswith("/login")


def test_a_name_with_markup_is_shown_as_text():
    ApiToken.issue("<img src=x onerror=alert(1)>", ["read"], person("owner"))
    assert "<img src=x" not in signed_in("owner").get("/tokens/").content.decode()


def test_the_command_makes_lists_and_revokes(capsys):
    call_command("api_token", "create", "ci", "--scopes", "read")
    secret = capsys.readouterr().out.strip()
    assert ApiToken.find(secret).scopes == ["read"]
    call_command("api_token", "list")
    listed = capsys.readouterr().out
    assert secret[:12] in listed
    assert secret not in listed
    call_command("api_token", "revoke", "ci")
    assert ApiToken.find(secret) is None


def test_the_command_says_what_was_wrong():
    with pytest.raises(CommandError, match="Scopes are some of: read, submit, create"):
        call_command("api_token", "create", "ci", "--scopes", "approve")
    with pytest.raises(CommandError, match="no user"):
        call_command("api_token", "create", "ci", "--user", "nobody")
    with pytest.raises(CommandError, match="No living token"):
        call_command("api_token", "revoke", "ghost")
