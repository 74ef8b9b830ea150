"""What holds for every page: no inline script, no inline handler, nothing from elsewhere; errors and login too."""

from __future__ import annotations

import re
import sqlite3

import pytest
from django.contrib.staticfiles import finders
from django.db.utils import OperationalError
from django.test import Client

from tests.factories import make_attempt, person


@pytest.fixture
def pages(owner, campaign) -> dict[str, str]:
    kept = make_attempt(campaign, "kept")
    bad = make_attempt(campaign, "flagged")
    paths = ["/", "/campaigns/", "/campaigns/new", campaign.get_absolute_url(), kept.get_absolute_url()]
    paths += [bad.get_absolute_url(), "/review/", "/nothing/here"]
    return {path: owner.get(path).content.decode() for path in paths} | {
        "/login": Client().get("/login").content.decode()
    }


def test_a_strict_content_security_policy_is_possible(pages):
    for path, page in pages.items():
        scripts = re.findall(r"<script\b[^>]*>", page)
        inline = [tag for tag in scripts if "src=" not in tag and 'type="application/json"' not in tag]
        assert not inline, path
        assert not re.search(r"<[^>]+\son[a-z]+\s*=", page), path
        assert "hx-on" not in page, path
        assert not re.search(r"<[^>]+\sstyle\s*=", page), path


def test_nothing_comes_from_elsewhere(pages):
    for path, page in pages.items():
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page), path


def test_every_static_file_that_is_named_is_there(pages):
    named = {name for page in pages.values() for name in re.findall(r'="/static/([^"]+)"', page)}
    assert {"vendor/htmx.min.js", "vendor/plotly.min.js", "css/app.css"} <= named
    assert [name for name in named if not finders.find(name)] == []


def test_every_field_has_a_label_and_every_id_is_there_once(pages):
    for path, page in pages.items():
        ids = re.findall(r'\sid="([^"]+)"', page)
        assert len(ids) == len(set(ids)), (path, [i for i in ids if ids.count(i) > 1])
        labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', page))
        fields = re.findall(r"<(?:input|select|textarea)\b[^>]*>", page)
        free = [f for f in fields if not re.search(r'type="(?:hidden|radio|checkbox)"', f)]
        assert all(re.search(r'id="([^"]+)"', f)[1] in labelled for f in free), path


def test_what_is_not_there_says_so_and_leads_home(owner):
    response = owner.get("/nothing/here")
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_a_fault_of_the_server_has_a_page_of_its_own(owner, monkeypatch):
    monkeypatch.setattr("campaigns.views.home.what_needs_me", lambda: 1 / 0)
    client = Client(raise_request_exception=False)
    client.force_login(person("owner"))
    response = client.get("/")
    assert response.status_code == 500
    assert "What was stored before stays stored" in response.content.decode()


@pytest.mark.parametrize(
    "headers", [{}, {"HX-Request": "true"}, {"Accept": "application/json"}], ids=["page", "part", "script"]
)
def test_a_database_that_is_held_is_said_in_a_sentence(owner, monkeypatch, headers):
    def held():
        raise OperationalError("database is locked") from sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("campaigns.views.home.what_needs_me", held)
    client = Client(raise_request_exception=False)
    client.force_login(person("owner"))
    response = client.get("/", headers=headers)
    assert response.status_code == 503
    assert "another process holds the database" in response.content.decode()


def test_a_form_that_is_too_old_is_refused_with_a_page(db):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("owner"))
    assert client.post("/campaigns/new", {"idea": "x"}).status_code == 403


def test_login_says_what_is_wrong_and_goes_on_to_where_one_wanted(db):
    someone = person("owner")
    someone.set_password("right")
    someone.save()
    client = Client()
    assert (
        "Name or password is wrong." in client.post("/login", {"username": "owner", "password": "x"}).content.decode()
    )
    answer = client.post("/login", {"username": "owner", "password": "right", "next": "/review/"})
    assert answer.headers["Location"] == "/review/"


def test_login_never_leads_to_another_site(db):
    page = Client().get("/login?next=https://evil.example/").content.decode()
    someone = person("owner")
    someone.set_password("right")
    someone.save()
    answer = Client().post("/login", {"username": "owner", "password": "right", "next": "https://evil.example/"})
    assert answer.headers["Location"] == "/"
    assert page


def test_the_count_of_approvals_stands_in_the_frame(owner, campaign):
    make_attempt(campaign, "kept")
    assert '<span id="review-count">1</span>' in owner.get("/campaigns/").content.decode()
