from __future__ import annotations

from dataclasses import replace

import pytest

from campaigns.loop import Situation, next_step

RUNNING = Situation(
    state="running",
    gate="auto",
    parallel=1,
    proposing=0,
    ready=0,
    evaluating=0,
    judged=0,
    waiting_for_review=0,
    budget_attempts=10,
    budget_s=None,
    elapsed_s=0.0,
    best_speedup=None,
    target_speedup=None,
    exhausted="",
)


def test_it_proposes_one_ahead_of_the_evaluator():
    assert next_step(RUNNING).propose == 2
    assert next_step(replace(RUNNING, evaluating=1, ready=1)).propose == 0


def test_it_keeps_as_many_evaluations_under_way_as_are_allowed():
    assert next_step(replace(RUNNING, ready=3, parallel=2)).evaluate == 2
    assert next_step(replace(RUNNING, ready=3, parallel=2, evaluating=2)).evaluate == 0


def test_it_never_makes_more_attempts_than_the_budget():
    assert next_step(replace(RUNNING, judged=9)).propose == 1
    assert next_step(replace(RUNNING, judged=8, evaluating=1, ready=1)).propose == 0


@pytest.mark.parametrize("state", ["draft", "queued", "paused", "finished", "stopped", "failed"])
def test_only_a_running_campaign_goes_on(state):
    assert next_step(replace(RUNNING, state=state, ready=1)) == next_step(replace(RUNNING, state="draft"))


def test_it_ends_when_the_budget_is_spent_and_nothing_is_being_measured():
    assert "10 attempts" in next_step(replace(RUNNING, judged=10)).finish
    assert not next_step(replace(RUNNING, judged=10, evaluating=1)).finish


def test_it_ends_at_the_target():
    assert "target" in next_step(replace(RUNNING, judged=3, best_speedup=2.1, target_speedup=2.0)).finish


def test_it_ends_when_the_time_is_spent():
    assert "60 s" in next_step(replace(RUNNING, judged=1, budget_s=60.0, elapsed_s=61.0)).finish


def test_it_ends_when_the_agent_has_nothing_more_but_not_before_the_last_verdict():
    assert "nothing more" in next_step(replace(RUNNING, judged=3, exhausted="the grid is used up")).finish
    last = next_step(replace(RUNNING, judged=2, ready=1, exhausted="the grid is used up"))
    assert (last.finish, last.propose, last.evaluate) == ("", 0, 1)


def test_with_a_persons_gate_it_waits_for_the_review():
    step = next_step(replace(RUNNING, gate="person", judged=1, waiting_for_review=1, ready=1))
    assert (step.propose, step.evaluate) == (0, 1)


def test_it_asks_for_nothing_where_candidates_come_in_from_outside_but_judges_what_came():
    external = replace(RUNNING, proposes=False, ready=2, parallel=1)
    assert (next_step(external).propose, next_step(external).evaluate) == (0, 1)
    assert next_step(replace(external, ready=0)) == next_step(replace(RUNNING, state="draft"))
    assert "10 attempts" in next_step(replace(external, ready=0, judged=10)).finish
