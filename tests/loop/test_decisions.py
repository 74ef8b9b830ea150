from __future__ import annotations

import pytest

from campaigns import actions
from campaigns.models import Campaign, Review
from tests.factories import make_attempt, make_campaign, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kept(at_broker):
    return make_attempt(make_campaign(), "kept")


def approve(attempt, who: str):
    return actions.approve(attempt, person(who), seen=0, sha256=attempt.signed_sha256())


def test_the_second_of_two_who_decide_at_once_is_told_who_was_first(kept):
    approve(kept, "ada")
    with pytest.raises(actions.ActionError, match="ada was first"):
        actions.reject(kept, person("grace"), seen=0, kind="other", reason="no")
    assert Review.objects.count() == 1


def test_what_was_signed_goes_stale_when_anything_changes(kept):
    review = approve(kept, "ada")
    assert not review.is_stale()
    kept.files = {"kernel.cpp": "// another one"}
    kept.save()
    assert Review.objects.get(pk=review.pk).is_stale()


def test_nobody_signs_what_they_have_not_seen(kept):
    seen = kept.signed_sha256()
    kept.files = {"kernel.cpp": "// another one"}
    kept.save()
    with pytest.raises(actions.ActionError, match="no longer what is stored"):
        actions.approve(kept, person("ada"), seen=0, sha256=seen)


def test_only_kept_kernels_are_approved(at_broker):
    attempt = make_attempt(make_campaign(), "incorrect")
    with pytest.raises(actions.ActionError, match="only kept kernels"):
        approve(attempt, "ada")


def test_a_rejection_sends_the_campaign_back_to_the_kernel_before(at_broker):
    campaign = make_campaign()
    first, second = make_attempt(campaign, "kept"), make_attempt(campaign, "kept")
    actions.reject(second, person("ada"), seen=0, kind="fragile", reason="nobody can read it")
    assert Campaign.objects.get(pk=campaign.pk).incumbent_id == first.pk


def test_a_change_of_mind_is_a_second_row(kept):
    approve(kept, "ada")
    actions.reject(kept, person("ada"), seen=1, kind="other", reason="I misread it")
    assert [r.decision for r in kept.reviews.all()] == ["approved", "rejected"]


def test_a_flag_is_decided_once_and_with_a_reason(at_broker):
    flag = make_attempt(make_campaign(), "flagged").flags.first()
    with pytest.raises(actions.ActionError, match="Say why"):
        actions.decide_flag(flag, person("ada"), state="dismissed", reason=" ")
    actions.decide_flag(flag, person("ada"), state="dismissed", reason="a workspace")
    with pytest.raises(actions.ActionError, match="ada was first"):
        actions.decide_flag(flag, person("grace"), state="confirmed", reason="a cache")
