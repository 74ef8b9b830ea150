"""Through a real web process: what only a socket shows."""

from __future__ import annotations

import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest


def kernel(number: int) -> dict:
    return {"files": {"kernel.cpp": f'extern "C" void run() {{}}\nint x = {number};\n'}, "title": f"try {number}"}


@pytest.fixture
def campaign(web, token) -> int:
    return web.ask(token, "/campaigns", {"problem": "softmax", "idea": "One pass.", "budget_attempts": 20}).body["id"]


def test_a_campaign_is_created_with_the_agent_external_and_started(web, token, campaign):
    found = web.ask(token, f"/campaigns/{campaign}").body
    assert (found["agent"], found["state"], found["problem"]) == ("external", "queued", "softmax")


def test_submissions_at_once_get_numbers_without_gap_and_never_more_than_the_budget(web, token, campaign):
    with ThreadPoolExecutor(12) as pool:
        sent = list(pool.map(lambda n: web.ask(token, f"/campaigns/{campaign}/attempts", kernel(n)), range(26)))
    numbers = sorted(answer.body["attempt"] for answer in sent if answer.status == 201)
    assert numbers == list(range(1, 21))
    assert {answer.status for answer in sent} == {201, 409}


def test_the_same_candidate_at_once_becomes_one_attempt(web, token, campaign):
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda _: web.ask(token, f"/campaigns/{campaign}/attempts", kernel(1)), range(8)))
    assert sorted(answer.status for answer in sent) == [201] + 7 * [409]
    assert {answer.body["attempt"] for answer in sent} == {1}


def test_the_verdict_call_waits_and_then_says_that_it_is_not_done(web, token, campaign):
    web.ask(token, f"/campaigns/{campaign}/attempts", kernel(1))
    began = time.monotonic()
    found = web.ask(token, f"/campaigns/{campaign}/attempts/1/verdict?timeout_s=1.5").body
    assert 1.4 < time.monotonic() - began < 5
    assert (found["done"], found["phase"]) == (False, "ready")


def test_the_verdict_call_answers_when_the_campaign_drops_the_attempt(web, token, campaign):
    web.ask(token, f"/campaigns/{campaign}/attempts", kernel(1))
    stop = "from campaigns import actions; from campaigns.models import Campaign; "
    stop += f"actions.stop(Campaign.objects.get(pk={campaign}), None)"
    threading.Timer(0.5, web.manage, ["shell", "-c", stop]).start()
    began = time.monotonic()
    found = web.ask(token, f"/campaigns/{campaign}/attempts/1/verdict?timeout_s=60").body
    assert time.monotonic() - began < 30
    assert (found["done"], found["phase"], found["verdict"]) == (True, "dropped", "")


def test_forty_who_wait_do_not_hold_up_the_others(web, token, campaign):
    web.ask(token, f"/campaigns/{campaign}/attempts", kernel(1))
    with ThreadPoolExecutor(40) as pool:
        waits = [
            pool.submit(web.ask, token, f"/campaigns/{campaign}/attempts/1/verdict?timeout_s=6") for _ in range(40)
        ]
        time.sleep(2)
        began = time.monotonic()
        assert web.ask(token, "/whoami").status == 200
        assert time.monotonic() - began < 2
        assert {wait.result().status for wait in waits} == {200}


@pytest.mark.parametrize("seconds", ["-1", "61", "nan", "inf", "soon"])
def test_how_long_to_wait_is_checked(web, token, campaign, seconds):
    answer = web.ask(token, f"/campaigns/{campaign}/attempts/1/verdict?timeout_s={seconds}")
    assert (answer.status, set(answer.body)) == (422, {"error", "hint"})


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/nowhere", None, 404),
        ("/campaigns/99999999999999999999999", None, 404),
        ("/campaigns/1/attempts/99999999999999999999", None, 404),
        ("/profiles/../../etc/passwd/findings", None, 404),
        ("/profiles/not-a-uuid/findings", None, 404),
        ("/campaigns", "DELETE", 405),
        ("/campaigns?limit=many", None, 422),
        ("/campaigns?state=sleeping", None, 422),
    ],
)
def test_every_error_is_json_with_a_hint(web, token, path, method, status):
    answer = web.ask(token, path, method=method)
    assert answer.status == status
    assert set(answer.body) == {"error", "hint"}


def test_a_body_that_is_too_large_is_refused(web, token, campaign):
    body = {"files": {"kernel.cpp": "x" * (9 << 20)}, "title": "x"}
    answer = web.ask(token, f"/campaigns/{campaign}/attempts", body)
    assert (answer.status, set(answer.body)) == (413, {"error", "hint"})


def test_who_asks_too_often_is_told_how_long_to_wait(web):
    reader = web.token("read")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: web.ask(reader, "/whoami"), range(650)))
    slowed = [answer for answer in answers if answer.status == 429]
    assert slowed
    assert 1 <= int(slowed[0].headers["retry-after"]) <= 61
    assert "timeout_s=60" in slowed[0].body["hint"]


def test_a_revoked_token_is_closed_at_the_next_request(web):
    reader = web.token("read")
    assert web.ask(reader, "/whoami").status == 200
    web.manage("api_token", "revoke", reader[:12])
    assert web.ask(reader, "/whoami").status == 401


def test_the_page_of_the_api_asks_no_other_host(web):
    with urllib.request.urlopen(f"{web.url}/api/docs") as page:
        text = page.read().decode()
    assert "http://" not in text
    assert "https://" not in text
    assert '"validatorUrl": null' in text
    with urllib.request.urlopen(f"{web.url}/static/ninja/swagger-ui-bundle.js") as script:
        assert len(script.read()) > 1_000_000


def test_the_schema_names_every_address_once(web):
    with urllib.request.urlopen(f"{web.url}/api/openapi.json") as answer:
        text = answer.read().decode()
    for path in ("/api/campaigns/{campaign}/task", "/api/campaigns/{campaign}/attempts/{attempt}/verdict"):
        assert text.count(f'"{path}"') == 1
