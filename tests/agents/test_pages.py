from __future__ import annotations

from decimal import Decimal

import pytest

from campaigns.context import library
from campaigns.models import Campaign, Lesson, ModelCall
from tests.factories import make_attempt, make_campaign, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client):
    client.force_login(person("owner"))
    return client


@pytest.mark.parametrize("page", ["/context/", "/context/dsl/cpp/", "/context/lessons/", "/context/new", "/spend/"])
def test_pages_want_a_signed_in_person(page, client):
    assert client.get(page).status_code == 200
    client.logout()
    assert client.get(page).status_code == 302


def test_the_list_shows_every_card_with_its_tokens(client):
    text = client.get("/context/").content.decode()
    for name in library.current()[0]:
        assert f"/context/{name}/" in text
    assert "tokens, about" in text


def test_a_card_is_shown_as_markdown_and_its_html_as_text(client):
    before = library.current()[0]["dsl/cpp"]
    evil = before.text + "\n<script>alert(1)</script> ![x](http://evil/x.png) [y](javascript:alert(1))\n"
    answer = client.post("/context/dsl/cpp/", {"text": evil, "note": "n", "seen": before.sha256}, follow=True)
    text = answer.content.decode()
    assert "Saved." in text
    assert "<script>alert(1)" not in text
    assert "<img" not in text
    assert 'href="javascript' not in text
    assert "&lt;script&gt;" in text


def test_a_refused_edit_keeps_what_was_typed(client):
    answer = client.post("/context/dsl/cpp/", {"text": "my precious words", "note": "", "seen": "old"})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "my precious words" in text
    assert "changed since you opened it" in text


def test_a_new_card_and_its_versions(client):
    made = client.post(
        "/context/new", {"name": "hardware/a100", "text": "---\nmatch: ^a100\n---\n# A100\n", "seen": ""}
    )
    assert made.headers["Location"] == "/context/hardware/a100/"
    first = library.current()[0]["hardware/a100"]
    client.post("/context/hardware/a100/", {"text": first.text + "\nMore.", "seen": first.sha256})
    old = client.get(f"/context/hardware/a100/?version={first.sha256}").content.decode()
    assert "An earlier wording" in old
    version = library.version_of(first)
    client.post(f"/context/versions/{version.pk}/use")
    assert library.current()[0]["hardware/a100"].sha256 == first.sha256


def test_a_name_that_is_none_keeps_the_text(client):
    answer = client.post("/context/new", {"name": "../x", "text": "words", "seen": ""})
    assert answer.status_code == 422
    assert "words" in answer.content.decode()


def test_an_attempt_is_found_by_the_wording_that_it_saw(client):
    card = library.current()[0]["dsl/cpp"]
    attempt = make_attempt(make_campaign(), "kept", title="One pass")
    attempt.cards.add(library.version_of(card))
    assert attempt.get_absolute_url() in client.get("/context/dsl/cpp/").content.decode()


def test_the_cards_that_a_campaign_would_get(client):
    text = client.get("/context/chosen?problem=mla_decode&hardware=h200&backend=triton").content.decode()
    for name in ("hardware/h200", "models/mla", "dsl/triton"):
        assert name in text
    assert client.get("/context/chosen?problem=nope&hardware=x&backend=y").status_code == 200


def test_lessons_are_added_pinned_and_struck(client):
    client.post("/context/lessons/add", {"problem": "rmsnorm", "hardware": "cpu", "text": "Do <b>not</b> split rows."})
    lesson = Lesson.objects.get()
    text = client.get("/context/lessons/?problem=rmsnorm").content.decode()
    assert "Do &lt;b&gt;not&lt;/b&gt; split rows." in text
    client.post(f"/context/lessons/{lesson.pk}", {"verb": "pin"})
    lesson.refresh_from_db()
    assert lesson.pinned_at
    client.post(f"/context/lessons/{lesson.pk}", {"verb": "strike", "back": "//evil.example/"})
    lesson.refresh_from_db()
    assert lesson.struck_at
    assert lesson.pinned_at is None
    assert lesson.decided_by == person("owner")


def test_a_way_back_leads_nowhere_else(client):
    lesson = Lesson.objects.create(problem="p", hardware="cpu", key="k", kind="dead_end", text="x")
    answer = client.post(f"/context/lessons/{lesson.pk}", {"verb": "pin", "back": "https://evil.example/"})
    assert answer.headers["Location"] == "/context/lessons/"


def test_spend_adds_up_and_says_what_is_unknown(client):
    campaign = make_campaign(idea="Read <once>.")
    attempt = make_attempt(campaign, "kept")
    common = {"campaign": campaign, "attempt": attempt, "agent": "openai", "outcome": "answered", "backend": "cpp"}
    ModelCall.objects.create(model="priced", input_tokens=12_345, output_tokens=678, price_usd=Decimal("1.5"), **common)
    ModelCall.objects.create(model="free-form", input_tokens=1_000, output_tokens=1, price_usd=None, **common)
    text = client.get("/spend/?days=all").content.decode()
    assert "12,345" in text
    assert "13,345" in text
    assert "$1.50" in text
    assert "unknown" in text
    assert "Read &lt;once&gt;." in text
    assert "100" in text, "keep rate of one kept of one"


def test_spend_without_any_call(client):
    assert "No model has been asked" in client.get("/spend/").content.decode()


def new_campaign(**fields):
    return {
        "problem": "rmsnorm",
        "idea": "One pass.",
        "hardware": "cpu",
        "rules": "",
        "gate": "auto",
        "budget_attempts": "5",
        "later": "1",
        **fields,
    }


@pytest.mark.django_db(transaction=True)
def test_a_campaign_of_a_model_is_made_by_the_form(client, monkeypatch):
    monkeypatch.setenv("OPENAI_ENDPOINTS", "local=http://127.0.0.1:9/v1")
    assert 'value="local"' in client.get("/campaigns/new").content.decode()
    fields = {"agent": "openai", "model": "qwen", "endpoint": "local", "budget_tokens": "50000", "policy": "bandit"}
    answer = client.post("/campaigns/new", new_campaign(**fields))
    assert answer.status_code == 302, answer.content.decode()
    made = Campaign.objects.get()
    assert made.agent_options == {"model": "qwen", "endpoint": "local"}
    assert (made.budget_tokens, made.policy, made.proposals_ahead) == (50_000, "bandit", 3)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"agent": "openai"}, "Say which model"),
        ({"agent": "openai", "model": "m", "endpoint": "nope"}, "no endpoint"),
        ({"agent": "anthropic", "model": "m"}, "Set ANTHROPIC_API_KEY"),
        ({"agent": "openai", "model": "m", "budget_tokens": "5"}, "1000"),
    ],
)
def test_what_cannot_run_is_told_and_kept(client, monkeypatch, fields, told):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    answer = client.post("/campaigns/new", new_campaign(**fields))
    assert answer.status_code == 422
    text = answer.content.decode()
    assert told in text
    assert "One pass." in text


def test_an_attempts_page_says_what_its_model_was_given_and_counted(client):
    campaign = make_campaign()
    attempt = make_attempt(campaign, "kept")
    card = library.current()[0]["dsl/cpp"]
    attempt.cards.add(library.version_of(card))
    common = {"campaign": campaign, "attempt": attempt, "agent": "openai", "model": "<i>m</i>", "outcome": "answered"}
    ModelCall.objects.create(input_tokens=4_321, cached_input_tokens=None, output_tokens=99, **common)
    text = client.get(attempt.get_absolute_url()).content.decode()
    assert "4,321" in text
    assert "not told" in text
    assert "unknown" in text
    assert "&lt;i&gt;m&lt;/i&gt;" in text
    assert f"/context/dsl/cpp/?version={card.sha256}" in text
    assert "price unknown · 4420 tokens" in client.get(campaign.get_absolute_url()).content.decode()
