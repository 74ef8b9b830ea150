"""Proposals in a campaign: what is written, refused, paid and told; with a real broker and a real model server."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from campaigns import actions, money, progress, proposing
from campaigns.actions import ActionError, NewCampaign
from campaigns.models import Attempt, ModelCall, Phase
from tests.agents.campaigning import judged, model_campaign, proposed, tunables_of, variant
from tests.agents.conftest import USAGE, submit
from tests.factories import make_attempt, make_campaign, person

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_proposal_waits_for_an_evaluator_with_its_cost_and_the_cards_it_saw(at_broker, serve, vendor):
    campaign = model_campaign(vendor)
    server = serve({"tools": [submit(variant(campaign, "int other = 3;"))], "usage": USAGE})
    attempt = proposed(campaign)
    assert attempt.phase in (Phase.READY, Phase.EVALUATING)
    assert attempt.proposer == vendor
    spent = money.spent(attempt.model_calls.all())
    assert (spent.input_tokens, spent.cached_input_tokens, spent.output_tokens) == (5_000, 3_000, 321)
    assert attempt.usage["input_tokens"] == 5_000
    names = set(attempt.cards.values_list("name", flat=True))
    assert {"hardware/cpu", "dsl/cpp"} <= names
    prompt = str(server.requests()[0]["body"])
    assert "C++ for the processor" in prompt
    assert "Read each row once." in prompt
    hidden = [w for w in problem_of(campaign).workloads if w.hidden]
    assert hidden
    assert not any(w.name in prompt for w in hidden)
    assert (
        "float64" not in campaign.problem_files["reference.py"] or campaign.problem_files["reference.py"] not in prompt
    )


def problem_of(campaign):
    from campaigns.harness.problem import load_problem

    return load_problem(campaign.problem_files)


FAILURES = {
    "overload": ({"status": 529, "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
    "refusal": ({"text": "No.", "stop": "refusal", "usage": USAGE}, "refused"),
    "cut": ({"text": "x" * 900, "cut": "clean", "usage": USAGE}, "cut off"),
    "malformed": ({"tools": [{"name": "submit", "arguments": "{"}], "usage": USAGE}, "wrong calls"),
    "talk": ({"text": "Hello.", "usage": USAGE}, "handed nothing in"),
    "key": ({"status": 401, "error": {"type": "authentication_error", "message": "no"}}, "did not accept the key"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_however_a_model_fails_the_campaign_ends_and_the_tokens_are_counted(at_broker, serve, vendor, settings, what):
    settings.MODEL_RETRIES = 1
    step, told = FAILURES[what]
    server = serve(step)
    campaign = model_campaign(vendor, proposals_ahead=1)
    for _ in range(proposing.MAX_FAILURES):
        progress.advance(campaign.pk)
        for attempt in campaign.attempts.filter(phase=Phase.PROPOSING):
            proposing.propose(attempt.pk)
    campaign.refresh_from_db()
    assert campaign.state == "failed"
    assert told in campaign.state_reason
    assert not campaign.attempts.filter(phase__in=(Phase.PROPOSING, Phase.READY)).exists()
    assert all(told in a.reason or "ended" in a.reason for a in campaign.attempts.all())
    spent, counted = money.of_campaign(campaign), server.counted()
    assert (spent.input_tokens, spent.output_tokens) == (counted["input"], counted["output"])


def test_a_campaign_that_is_stopped_stops_its_stream_and_still_pays(at_broker, serve, vendor):
    server = serve({"text": "x" * 40_000, "piece_s": 0.1, "usage": USAGE})
    campaign = model_campaign(vendor)
    attempt = progress.begin_attempt(campaign)
    thread = threading.Thread(target=run_in_thread, args=(attempt.pk,))
    thread.start()
    wait_for(lambda: Attempt.objects.get(pk=attempt.pk).claim)
    threading.Event().wait(0.7)
    actions.stop(campaign, person("owner"))
    thread.join(2)
    assert not thread.is_alive()
    attempt.refresh_from_db()
    assert attempt.phase == Phase.DROPPED
    call = ModelCall.objects.get()
    assert call.outcome == "stopped"
    wait_for(server.requests)
    assert server.requests()[0]["gone"]
    assert (call.input_tokens or 0) == server.counted()["input"]


def run_in_thread(pk):
    from django.db import connections

    try:
        proposing.propose(pk)
    finally:
        connections.close_all()


def wait_for(what, within_s: float = 5.0):
    import time

    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.02)
    raise AssertionError("not in time")


def test_giving_up_spends_the_idea_and_others_go_on(at_broker, serve, vendor):
    serve({"tools": [{"name": "give_up", "arguments": {"reason": "At the floor."}}], "usage": USAGE})
    campaign = model_campaign(vendor)
    actions.add_idea(campaign, None, "Another way.")
    first = proposed(campaign)
    assert first.phase == Phase.DROPPED
    assert first.idea.spent == "" or first.idea.spent == "At the floor."
    campaign.refresh_from_db()
    assert campaign.exhausted == ""
    assert campaign.ideas.filter(spent="At the floor.").count() == 1
    proposed(campaign)
    campaign.refresh_from_db()
    assert campaign.exhausted == "At the floor."


def test_a_budget_in_tokens_ends_the_campaign_before_it_is_overrun(at_broker, serve, vendor):
    campaign = model_campaign(vendor, budget_tokens=60_000, budget_attempts=1000, proposals_ahead=2)
    look = {"tools": [{"name": "list_attempts", "arguments": {}}], "usage": {"input": 6_000, "output": 700}}
    serve(look)
    for _ in range(20):
        progress.advance(campaign.pk)
        campaign.refresh_from_db()
        if campaign.is_ended:
            break
        for attempt in campaign.attempts.filter(phase=Phase.PROPOSING):
            proposing.propose(attempt.pk)
    assert campaign.state == "finished"
    assert "budget" in campaign.state_reason
    assert 30_000 < money.of_campaign(campaign).tokens <= 60_000


def test_two_proposals_at_once_share_what_is_left(at_broker, serve, vendor):
    campaign = model_campaign(vendor, budget_tokens=100_000)
    one, two = progress.begin_attempt(campaign), progress.begin_attempt(campaign)
    assert money.reserve(one) == (50_000, None)
    assert money.reserve(two) == (50_000, None)
    three = progress.begin_attempt(campaign)
    assert money.reserve(three) == (0, None)
    progress.drop(one, "done")
    assert money.reserve(three) == (50_000, None)


def test_a_campaign_without_model_or_with_an_unknown_endpoint_is_not_created(serve, vendor):
    serve()
    with pytest.raises(ActionError, match="the option `model`"):
        actions.create(NewCampaign(problem="rmsnorm", idea="x", agent=vendor), None)
    options = {"model": "m", "endpoint": "evil"}
    with pytest.raises(ActionError, match="no endpoint 'evil'"):
        actions.create(NewCampaign(problem="rmsnorm", idea="x", agent=vendor, agent_options=options), None)
    options = {"model": "m", "base_url": "http://evil"}
    with pytest.raises(ActionError, match="Unknown option 'base_url'"):
        actions.create(NewCampaign(problem="rmsnorm", idea="x", agent=vendor, agent_options=options), None)


def test_no_key_is_stored_with_a_campaign(at_broker, serve, vendor):
    campaign = model_campaign(vendor)
    serve({"status": 401, "error": {"type": "authentication_error", "message": "sk-ant-secret-of-the-test-0123456789"}})
    proposed(campaign)
    campaign.refresh_from_db()
    everything = [
        campaign.state_reason,
        str(campaign.agent_options),
        *campaign.attempts.values_list("reason", flat=True),
    ]
    everything += [str(e.data) for e in campaign.events.all()]
    assert "secret-of-the-test" not in " ".join(everything)


# ── Hand-over to the tuner ──


def test_the_numbers_of_a_promising_candidate_are_turned_by_the_tuner(at_broker, serve, vendor):
    campaign = model_campaign(vendor, options={"tune": 2})
    server = serve({"tools": [submit(variant(campaign, "\nint other = 3;\n"))], "usage": USAGE})
    files = variant(campaign, "\nint idea = 1;\n")
    parameters = {t.name: t.value for t in tunables_of(campaign)}
    promising = judged(campaign, files, "kept", proposer=vendor, parameters=parameters)
    tuned = [proposed(campaign) for _ in range(2)]
    assert [a.proposer for a in tuned] == ["tuner", "tuner"]
    assert all(a.structure_sha256 == promising.structure_sha256 for a in tuned)
    assert not server.requests()
    assert proposed(campaign).proposer == vendor


# ── Money ──


def test_sums_say_what_is_not_known(db):
    campaign = make_campaign()
    attempt = make_attempt(campaign, "kept")
    common = {"campaign": campaign, "attempt": attempt, "agent": "openai", "outcome": "answered"}
    ModelCall.objects.create(model="a", input_tokens=100, output_tokens=10, price_usd=Decimal("0.25"), **common)
    assert money.of_campaign(campaign).known_usd == Decimal("0.25")
    assert money.cost_per_kept(campaign) == Decimal("0.25")
    ModelCall.objects.create(model="b", input_tokens=1, output_tokens=1, price_usd=None, **common)
    spent = money.of_campaign(campaign)
    assert (spent.known_usd, spent.usd, spent.without_price) == (None, Decimal("0.25"), 1)
    assert money.cost_per_kept(campaign) is None
    assert [(key["model"], total.tokens) for key, total in money.by(ModelCall.objects.all(), "model")] == [
        ("a", 110),
        ("b", 2),
    ]


# ── What must not hang or be done twice ──


def test_a_fault_of_our_own_ends_the_campaign_with_its_reason(at_broker, monkeypatch):
    from campaigns.context import library

    def broken(campaign):
        raise RuntimeError("the shelf fell over")

    monkeypatch.setattr(library, "chosen_for", broken)
    campaign = make_campaign()
    for _ in range(proposing.MAX_FAILURES):
        progress.advance(campaign.pk)
        for attempt in campaign.attempts.filter(phase=Phase.PROPOSING):
            proposing.propose(attempt.pk)
    campaign.refresh_from_db()
    assert campaign.state == "failed"
    assert "the shelf fell over" in campaign.state_reason


def test_the_tuner_passes_over_points_that_an_earlier_campaign_showed_to_be_dead_ends(at_broker):
    first = make_campaign()
    dead = proposed(first)
    dead_files = dead.files
    Attempt.objects.filter(pk=dead.pk).update(phase=Phase.JUDGED, verdict="incorrect")
    second = make_campaign()
    attempt = proposed(second)
    assert attempt.verdict != "duplicate"
    assert attempt.files != dead_files


def test_a_campaign_without_rules_of_its_own_has_the_defaults(at_broker, serve, vendor):
    campaign = model_campaign(vendor)
    server = serve({"tools": [submit(variant(campaign, "int other = 3;"))], "usage": USAGE})
    proposed(campaign)
    assert "CUDA graphs must keep working" in str(server.requests()[0]["body"])
