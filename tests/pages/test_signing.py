"""Two signatures where a setting wants them: not the same person's, and the second not the author's of the idea."""

from __future__ import annotations

import json

import pytest

from campaigns import actions
from campaigns.actions import ActionError
from campaigns.library import shelf
from campaigns.models import Attempt, Review
from tests.factories import make_attempt, make_campaign, person
from tests.pages.test_review import HTMX, approve

RANGE = {"axis": "rows", "lo": 16, "hi": 256}


@pytest.fixture
def two(settings):
    settings.REVIEW_SIGNATURES = 2


@pytest.fixture
def kept(campaign) -> Attempt:
    """Its idea is the owner's."""
    return make_attempt(campaign, "kept")


def sign(attempt: Attempt, who: str, range_=None) -> Review:
    attempt.refresh_from_db()
    sha256 = attempt.signed_sha256(range_)
    return actions.approve(attempt, person(who), seen=attempt.decision_seq, sha256=sha256, range_=range_)


def test_the_first_signature_approves_nothing_and_the_second_does(two, kept):
    assert sign(kept, "owner").decision == "signed"
    assert shelf.kernels() == []
    assert sign(kept, "teammate").decision == "approved"
    assert [kernel.in_force() for kernel in shelf.kernels()] == [True]


def test_the_second_is_neither_the_first_signer_nor_the_ideas_author(two, kept):
    sign(kept, "teammate")
    with pytest.raises(ActionError, match="You signed first"):
        sign(kept, "teammate")
    with pytest.raises(ActionError, match="The idea is yours"):
        sign(kept, "owner")


def test_both_sign_the_same_range(two, kept):
    sign(kept, "owner", RANGE)
    with pytest.raises(ActionError, match="for 16 ≤ rows ≤ 256"):
        sign(kept, "teammate")
    assert sign(kept, "teammate", RANGE).range == RANGE


def test_a_first_signature_of_what_has_changed_since_is_none(two, kept):
    sign(kept, "owner")
    Attempt.objects.filter(pk=kept.pk).update(files={"kernel.cpp": "// something else\n"})
    assert sign(Attempt.objects.get(pk=kept.pk), "teammate").decision == "signed"


def test_one_signature_is_enough_without_the_setting(kept):
    assert sign(kept, "owner").decision == "approved"


def test_the_queue_shows_who_signed_and_waits_for_the_other(two, owner, teammate, kept):
    page = owner.get("/review/").content.decode()
    assert "Sign, first of two" in page
    approve(owner, kept)
    mine, theirs = owner.get("/review/"), teammate.get("/review/")
    assert mine.context["attempt"] == theirs.context["attempt"] == kept
    assert "You signed first" in mine.content.decode()
    assert "disabled" in mine.content.decode()
    assert "Signed by owner" in theirs.content.decode()
    approve(teammate, Attempt.objects.get(pk=kept.pk))
    history = teammate.get(f"/review/{kept.pk}/").content.decode()
    assert "superseded" not in history
    assert list(Review.objects.values_list("decision", "reviewer__username")) == [
        ("signed", "owner"),
        ("approved", "teammate"),
    ]


def test_the_second_signs_the_range_of_the_first_by_the_same_button(two, owner, teammate, kept):
    sign(kept, "owner", RANGE)
    kept.refresh_from_db()
    page = teammate.get("/review/").content.decode()
    assert f'name="range_sha256" value="{kept.signed_sha256(RANGE)}"' in page
    fields = {
        "seen": kept.decision_seq,
        "sha256": kept.signed_sha256(),
        **RANGE,
        "range_sha256": kept.signed_sha256(RANGE),
    }
    assert teammate.post(f"/review/{kept.pk}/approve", fields, headers=HTMX).status_code == 200
    assert Review.objects.last().decision == "approved"


def test_the_trail_holds_every_decision_and_is_exported(two, owner, teammate, kept):
    sign(kept, "owner", RANGE)
    sign(kept, "teammate", RANGE)
    kept.refresh_from_db()
    actions.reject(kept, person("owner"), seen=2, kind="fragile", reason="=cmd|' /C calc'!A0")
    other = make_attempt(make_campaign(title="another"), "kept")
    sign(other, "owner")
    entries = json.loads(owner.get("/review/trail.json").content)["entries"]
    assert [(e["who"], e["what"]) for e in entries] == [
        ("owner", "signed"),
        ("owner", "rejected"),
        ("teammate", "approved"),
        ("owner", "signed"),
    ]
    assert entries[2]["range"] == "16 ≤ rows ≤ 256"
    assert len(json.loads(owner.get(f"/review/trail.json?campaign={kept.campaign_id}").content)["entries"]) == 3
    lines = owner.get("/review/trail.csv").content.decode()
    assert ",\"'=cmd|' /C calc'!A0\"," in lines or ",'=cmd|' /C calc'!A0," in lines
    page = owner.get("/review/trail").content.decode()
    assert page.count("teammate") == 1
    assert owner.get("/review/trail.xml").status_code == 404


def test_a_stale_signature_is_marked_in_the_trail(owner, kept):
    sign(kept, "owner")
    Attempt.objects.filter(pk=kept.pk).update(files={"kernel.cpp": "// something else\n"})
    assert ">stale<" in owner.get("/review/trail").content.decode()


def test_an_outsider_sees_no_trail(outsider):
    assert outsider.get("/review/trail.json").status_code == 302
