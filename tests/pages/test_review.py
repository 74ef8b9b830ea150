from __future__ import annotations

import re

from campaigns import actions
from campaigns.models import Attempt, Review
from tests.factories import block, make_attempt, person

HTMX = {"HX-Request": "true"}


def form(attempt: Attempt, **fields):
    return {"seen": attempt.decision_seq, "sha256": attempt.signed_sha256(), **fields}


def approve(client, attempt: Attempt, **fields):
    return client.post(f"/review/{attempt.pk}/approve", form(attempt, **fields), headers=HTMX)


def reject(client, attempt: Attempt, **fields):
    typed = {"kind": "fragile", "reason": "Too clever.", **fields}
    return client.post(f"/review/{attempt.pk}/reject", form(attempt, **typed), headers=HTMX)


def test_an_outsider_approves_nothing(outsider, campaign):
    approve(outsider, make_attempt(campaign, "kept"))
    assert not Review.objects.exists()


def test_an_empty_queue_says_what_to_do(owner):
    assert "Nothing waits for you" in owner.get("/review/").content.decode()


def test_the_oldest_comes_first_and_knows_its_neighbours(owner, campaign):
    first, second = make_attempt(campaign, "kept"), make_attempt(campaign, "kept")
    context = owner.get("/review/").context
    assert context["attempt"] == first
    assert (context["position"], context["total"], context["next"], context["previous"]) == (1, 2, second.pk, None)


def test_only_kept_ones_wait(owner, campaign):
    for verdict in ("reverted", "flagged", "stacked", "incorrect"):
        make_attempt(campaign, verdict)
    assert owner.get("/review/").context.get("attempt") is None


def test_approving_signs_what_was_shown_and_brings_the_next(owner, campaign):
    first, second = make_attempt(campaign, "kept"), make_attempt(campaign, "kept")
    shown = re.search(r'name="sha256" value="(\w+)"', owner.get("/review/").content.decode())[1]
    response = approve(owner, first, sha256=shown)
    assert response.context["attempt"] == second
    assert f'data-address="/review/{second.pk}/"' in response.content.decode()
    review = Review.objects.get()
    assert (review.decision, review.sha256, review.reviewer.username) == ("approved", shown, "owner")


def test_another_hash_than_the_stored_one_is_not_signed(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    response = approve(owner, attempt, sha256="0" * 64)
    assert response.status_code == 409
    assert "no longer what is stored" in response.content.decode()
    assert not Review.objects.exists()


def test_the_second_tab_is_told_who_was_first_and_keeps_its_page(owner, teammate, campaign):
    attempt = make_attempt(campaign, "kept")
    late = form(attempt, kind="cheat", reason="I typed all of this.")
    approve(owner, attempt)
    response = teammate.post(f"/review/{attempt.pk}/reject", late, headers=HTMX)
    page = response.content.decode()
    assert response.status_code == 409
    assert "owner was first: approved it" in page
    assert "I typed all of this." in page
    assert response.context["attempt"] == attempt


def test_without_scripts_a_refusal_keeps_the_page_too(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    response = owner.post(f"/review/{attempt.pk}/reject", form(attempt, kind="other", reason=""))
    assert response.status_code == 409
    assert "Say why" in response.content.decode()
    assert "<html" in response.content.decode()


def test_without_scripts_a_decision_goes_on_to_the_next(owner, campaign):
    first, second = make_attempt(campaign, "kept"), make_attempt(campaign, "kept")
    response = owner.post(f"/review/{first.pk}/approve", form(first))
    assert response.headers["Location"] == f"/review/{second.pk}/"


def test_rejecting_steps_back_to_the_kernel_before(owner, campaign):
    first, second = make_attempt(campaign, "kept"), make_attempt(campaign, "kept")
    reject(owner, second)
    campaign.refresh_from_db()
    assert campaign.incumbent == first


def test_a_decision_is_undone_by_a_second_one(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    approve(owner, attempt)
    attempt.refresh_from_db()
    reject(owner, attempt)
    assert list(Review.objects.values_list("seq", "decision")) == [(1, "approved"), (2, "rejected")]
    page = owner.get(f"/review/{attempt.pk}/").content.decode()
    assert "superseded" in page


def test_what_was_changed_after_the_signature_is_shown_as_stale(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    approve(owner, attempt)
    Attempt.objects.filter(pk=attempt.pk).update(files={"kernel.cpp": "// something else\n"})
    assert "stale" in owner.get(f"/review/{attempt.pk}/").content.decode()


def test_a_blocking_flag_holds_the_approval_back(owner, campaign):
    attempt = make_attempt(campaign, "kept", findings=[block()])
    assert "disabled" in owner.get("/review/").content.decode()
    assert approve(owner, attempt).status_code == 409


def bounds(**changes):
    return {"axis": "rows", "lo": "16", "hi": "256", **changes}


def test_a_range_has_a_signature_of_its_own(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    part = owner.get(f"/review/{attempt.pk}/signature", bounds()).content.decode()
    signed = re.search(r'name="range_sha256" value="(\w+)"', part)[1]
    assert signed == attempt.signed_sha256({"axis": "rows", "lo": 16, "hi": 256})
    assert approve(owner, attempt, **bounds(), range_sha256=signed).status_code == 200
    assert Review.objects.get().range == {"axis": "rows", "lo": 16, "hi": 256}


def test_a_signature_of_another_range_is_refused(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    other = attempt.signed_sha256({"axis": "rows", "lo": 1, "hi": 2})
    assert approve(owner, attempt, **bounds(), range_sha256=other).status_code == 409


def test_what_is_no_range_is_said(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    for wrong in (bounds(lo="x"), bounds(lo="300"), bounds(axis="colour"), bounds(lo="-5"), bounds(hi="9" * 40)):
        response = approve(owner, attempt, **wrong)
        assert response.status_code == 409
        assert 'role="alert"' in response.content.decode()
    assert not Review.objects.exists()


def test_a_form_without_its_fields_is_refused_and_no_error(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    assert owner.post(f"/review/{attempt.pk}/approve", {}, headers=HTMX).status_code == 409
    assert owner.post(f"/review/{attempt.pk}/reject", {"seen": "²"}, headers=HTMX).status_code == 409


def test_every_key_of_the_help_is_on_the_page(owner, campaign):
    make_attempt(campaign, "kept", findings=[])
    make_attempt(campaign, "kept")
    page = owner.get("/review/").content.decode()
    assert {"j", "a", "A", "r", "f", "d", "?"} <= set(re.findall(r'data-key="(.)"', page))


def test_one_that_was_decided_is_still_there_to_look_at(owner, teammate, campaign):
    attempt = make_attempt(campaign, "kept")
    actions.approve(attempt, person("owner"), seen=0, sha256=attempt.signed_sha256())
    assert "by owner" in teammate.get(f"/review/{attempt.pk}/").content.decode()
