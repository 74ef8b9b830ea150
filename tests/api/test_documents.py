from __future__ import annotations

import json
import re

import pytest

from campaigns.harness.problem import load_problem
from tests.factories import make_attempt, make_campaign, make_report

from .conftest import Agent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]


def answers(agent: Agent, campaign) -> dict[str, str]:
    """Every answer that an agent can get about a campaign."""
    base = f"/campaigns/{campaign.pk}"
    paths = ["/campaigns", base, f"{base}/task", f"{base}/attempts"]
    for attempt in campaign.attempts.all():
        paths += [f"{base}/attempts/{attempt.number}{tail}" for tail in ("", "/report", "/candidate", "/verdict")]
    return {path: agent.get(path).content.decode() for path in paths}


def test_no_answer_tells_a_hidden_workload():
    campaign = make_campaign(agent="external")
    hidden = [w for w in load_problem(campaign.problem_files).workloads_on("cpu") if w.hidden]
    for verdict in ("kept", "incorrect", "flagged", "reverted"):
        summary = f"{hidden[0].name}: 7 of 9 values are wrong; seen again on {hidden[1].name}"
        report = make_report(campaign, verdict, [], summary=summary, output=f"printed by it: {hidden[0].axes}")
        make_attempt(
            campaign, verdict, report=report, reason=summary, ranges=[{"axis": "rows", "lo": 1000, "hi": 1000}]
        )
    names = "|".join(re.escape(w.name) for w in hidden)
    visible = {str(v) for w in load_problem(campaign.problem_files).workloads if not w.hidden for v in w.axes.values()}
    values = {str(v) for w in hidden for v in w.axes.values() if v > 100} - visible
    for path, text in answers(Agent("read"), campaign).items():
        assert not re.search(names, text), path
        for value in values:
            assert not re.search(rf"(?<![\d.]){value}(?![\d.])", text), (path, value)


def test_no_answer_holds_the_reference_or_a_seed():
    campaign = make_campaign(agent="external")
    make_attempt(campaign, "kept")
    reference = campaign.problem_files["reference.py"].strip().splitlines()[-1].strip()
    for path, text in answers(Agent("read"), campaign).items():
        assert reference not in json.dumps(json.loads(text), ensure_ascii=False), path
        assert '"seed"' not in text, path


def test_the_report_has_visible_rows_and_one_hidden_aggregate():
    campaign = make_campaign(agent="external")
    make_attempt(campaign, "kept")
    report = Agent("read").get(f"/campaigns/{campaign.pk}/attempts/1/report").json()
    assert [row["name"] for row in report["visible_workloads"]] == ["cpu_r64_h1024", "cpu_r256_h4096", "cpu_r16_h16384"]
    assert report["hidden_workloads"]["right"] == report["hidden_workloads"]["count"] == 5
    assert report["output"] == ""
    assert report["output_withheld"] is True


def test_a_task_has_all_that_a_proposer_needs():
    campaign = make_campaign(agent="external", idea="Read each row once.", rules="No recursion.")
    make_attempt(campaign, "kept")
    make_attempt(campaign, "build_failed")
    task = Agent("read").get(f"/campaigns/{campaign.pk}/task").json()
    assert task["ideas"][0]["text"] == "Read each row once."
    assert task["rules"] == "No recursion."
    assert task["incumbent"]["attempt"] == 1
    assert "kernel.cpp" in task["incumbent"]["files"]
    assert {t["name"] for t in task["incumbent"]["tunables"]} >= {"LANES", "FUSE"}
    assert [a["verdict"] for a in task["attempts"]] == ["kept", "build_failed"]
    assert [w["name"] for w in task["interface"]["visible_workloads"]] == [
        "cpu_r64_h1024",
        "cpu_r256_h4096",
        "cpu_r16_h16384",
    ]
    assert task["attempts_left"] == campaign.budget_attempts - 2


def test_attempts_come_in_pages():
    campaign = make_campaign(agent="external")
    for _ in range(5):
        make_attempt(campaign, "reverted")
    agent = Agent("read")
    first = agent.get(f"/campaigns/{campaign.pk}/attempts?limit=3").json()["attempts"]
    rest = agent.get(f"/campaigns/{campaign.pk}/attempts?limit=3&after={first[-1]['number']}").json()["attempts"]
    assert [a["number"] for a in first + rest] == [1, 2, 3, 4, 5]


def test_attempt_0_is_the_start_kernel():
    campaign = make_campaign(agent="external")
    found = Agent("read").get(f"/campaigns/{campaign.pk}/attempts/0/candidate").json()
    assert found["files"] == campaign.start_files


def test_an_attempt_without_a_report_says_so():
    campaign = make_campaign(agent="external")
    make_attempt(campaign)
    answer = Agent("read").get(f"/campaigns/{campaign.pk}/attempts/1/report")
    assert answer.status_code == 404
    assert "no report" in answer.json()["error"]


def test_a_persons_rejection_reaches_the_agent():
    campaign = make_campaign(agent="external")
    attempt = make_attempt(campaign, "kept", decision="rejected")
    attempt.reviews.create(seq=1, decision="rejected", reason="unreadable", sha256="x")
    assert Agent("read").get(f"/campaigns/{campaign.pk}/attempts/1").json()["rejection"] == "unreadable"
