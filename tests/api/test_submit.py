from __future__ import annotations

import pytest

from campaigns.models import Attempt, Campaign, Event
from tests.factories import make_attempt, make_campaign

from .conftest import Agent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]
START = 'constexpr int LANES = 2;  // tunable: 1, 2, 4\nextern "C" void run() {}\n'


@pytest.fixture
def campaign():
    return make_campaign(agent="external", budget_attempts=5)


def submit(agent: Agent, campaign: Campaign, text: str = START, **fields):
    body = {"files": {"kernel.cpp": text}, "title": "two lanes", **fields}
    return agent.post(f"/campaigns/{campaign.pk}/attempts", body)


def refused(answer, status, words):
    assert answer.status_code == status, answer.content
    assert words in answer.json()["error"]
    assert answer.json()["hint"]
    assert Attempt.objects.filter(phase="ready").count() <= 1


def test_a_candidate_waits_for_an_evaluator_and_says_who_made_it(agent, campaign):
    usage = {"model": "m", "input_tokens": 900, "output_tokens": 80, "cached_input_tokens": 500}
    answer = submit(agent, campaign, rationale="fewer walks", usage=usage)
    assert answer.status_code == 201
    attempt = Attempt.objects.get()
    assert answer.json()["attempt"] == attempt.number == 1
    assert (attempt.phase, attempt.title, attempt.rationale) == ("ready", "two lanes", "fewer walks")
    assert attempt.proposer == "external: agent"
    assert attempt.parameters == {"LANES": "2"}
    assert attempt.idea == campaign.ideas.get()
    assert attempt.usage["input_tokens"] == 900
    assert Event.objects.get(kind="attempt.proposed").attempt == attempt


def test_the_same_program_again_is_refused_with_the_number_of_the_first(agent, campaign):
    submit(agent, campaign)
    answer = submit(agent, campaign, "// another comment\n" + START.replace("  ", " "))
    refused(answer, 409, "attempt 1 again")
    assert answer.json()["attempt"] == 1


def test_what_was_not_measured_may_be_submitted_again(agent, campaign):
    submit(agent, campaign)
    Attempt.objects.update(phase="judged", verdict="no_measurement")
    assert submit(agent, campaign).status_code == 201


def test_the_start_kernel_is_refused(agent, campaign):
    refused(submit(agent, campaign, campaign.start_files["kernel.cpp"]), 409, "start kernel")


@pytest.mark.parametrize("state", ["draft", "paused", "finished", "stopped", "failed"])
def test_only_a_running_campaign_takes_candidates(agent, campaign, state):
    Campaign.objects.update(state=state)
    refused(submit(agent, campaign), 409, state)


def test_a_campaign_whose_agent_proposes_takes_none(agent):
    refused(submit(agent, make_campaign(agent="tuner")), 409, "tuner")


def test_never_more_than_the_budget(agent, campaign):
    for lanes in range(5):
        assert submit(agent, campaign, START + f"int x = {lanes};").status_code == 201
    answer = submit(agent, campaign, START + "int last;")
    assert answer.status_code == 409
    assert "budget of 5 attempts is spent" in answer.json()["error"]
    assert Attempt.objects.count() == 5


def test_with_a_persons_gate_it_waits_for_the_review(agent, campaign):
    Campaign.objects.update(gate="person")
    make_attempt(campaign, "kept")
    refused(submit(agent, campaign), 409, "waits for a person")


def test_time_that_is_spent_is_spent(agent, campaign):
    Campaign.objects.update(budget_seconds=10, ran_s=11)
    refused(submit(agent, campaign), 409, "10 s")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no files"),
        ({f"f{n}.h": "" for n in range(65)}, "65 files"),
        ({"kernel.cpp": "x\n" * 600_000}, "1,200,000 bytes"),
        ({"kernel.cpp": "x" * 2001}, "kernel.cpp:1: has 2,001 characters"),
        ({"../kernel.cpp": "x"}, "no path"),
        ({"/etc/kernel.cpp": "x"}, "no path"),
        ({"a//kernel.cpp": "x"}, "no path"),
        ({".hidden.cpp": "x"}, "no path"),
        ({"a\\kernel.cpp": "x"}, "no path"),
        ({"kernel.cpp\n": "x"}, "no path"),
        ({"kernel.cpp": "x", "kernel.cpp/a.h": "x"}, "file and a folder"),
        ({"kernel.so": "x"}, "no source file"),
        ({"kernel.cpp": "a\x00b"}, "NUL"),
        ({"one.cpp": "x", "two.cpp": "x"}, "needs one kernel.cpp"),
        ({"kernel.cpp": "int A = 3;  // tunable: 1, 2\n"}, "not among its choices"),
    ],
)
def test_what_cannot_be_a_candidate_is_refused_before_it_is_one(agent, campaign, files, words):
    refused(agent.post(f"/campaigns/{campaign.pk}/attempts", {"files": files, "title": "x"}), 422, words)
    assert Attempt.objects.count() == 0


def test_half_a_character_is_refused(agent, campaign):
    answer = agent.client.post(
        f"/api/campaigns/{campaign.pk}/attempts",
        b'{"files": {"kernel.cpp": "\\ud800"}, "title": "x"}',
        content_type="application/json",
    )
    assert answer.status_code == 422


@pytest.mark.parametrize("backend", ["triton", "fortran"])
def test_another_backend_is_refused(agent, campaign, backend):
    refused(submit(agent, campaign, backend=backend), 422, backend)


def test_an_idea_of_another_campaign_is_refused(agent, campaign):
    refused(submit(agent, campaign, idea=make_campaign().ideas.get().pk), 422, "no open idea")


def test_more_cached_than_all_tokens_cannot_be(agent, campaign):
    usage = {"model": "m", "input_tokens": 1, "output_tokens": 1, "cached_input_tokens": 2}
    refused(submit(agent, campaign, usage=usage), 422, "more cached tokens")


def test_a_field_that_is_not_known_is_named(agent, campaign):
    refused(submit(agent, campaign, approve=True), 422, "approve")


def test_giving_up_says_why_and_a_later_candidate_takes_it_back(agent, campaign):
    answer = agent.post(f"/campaigns/{campaign.pk}/nothing-more", {"reason": "memory-bound at 97 % of the floor"})
    assert answer.status_code == 200
    campaign.refresh_from_db()
    assert campaign.exhausted == "memory-bound at 97 % of the floor"
    assert submit(agent, campaign).status_code == 201
    campaign.refresh_from_db()
    assert campaign.exhausted == ""
