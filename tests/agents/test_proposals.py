"""Every way that a request to a model can end, through the real clients against a real server process."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from campaigns.proposers.base import Desk, Exhausted, IdeaSpent, ProposerError
from tests.agents.conftest import BETTER, START, USAGE, make_task, propose, submit

READ = {"name": "read_file", "arguments": {"of": "incumbent"}}
LOOK = {"text": "Let me look.", "tools": [READ], "usage": USAGE}
HAND_IN = {"tools": [submit()], "usage": USAGE}


def totals(calls):
    names = {
        "input": "input_tokens",
        "cached": "cached_input_tokens",
        "written": "cache_write_tokens",
        "output": "output_tokens",
    }
    return {short: sum(getattr(call, name) or 0 for call in calls) for short, name in names.items()}


def counts_agree(server, calls, vendor):
    counted, ours = server.counted(), totals(calls)
    if vendor == "openai":
        counted["written"] = 0  # Chat Completions as served here does not tell it
    return counted == ours


def test_it_reads_with_a_tool_and_hands_in_a_candidate(serve, vendor):
    server = serve(LOOK, HAND_IN)
    proposal, calls, said = propose(vendor)
    assert proposal.candidate.files == {"kernel.cpp": BETTER}
    assert (proposal.title, proposal.rationale, proposal.parameters) == ("Add", "One instruction less.", {"LANES": "8"})
    assert said == "Let me look."
    assert counts_agree(server, calls, vendor)
    assert proposal.usage.requests == 2
    told = str(server.requests()[1]["body"]["messages"])
    assert "constexpr int LANES = 8" in told


def test_totals_are_to_the_token_what_the_server_said(serve, vendor):
    steps = [{**LOOK, "usage": {"input": 1000 + n, "cached": 10 * n, "written": 0, "output": 7 + n}} for n in range(6)]
    server = serve(*steps, HAND_IN)
    proposal, calls, _ = propose(vendor)
    assert len(calls) == 7
    assert counts_agree(server, calls, vendor)
    assert proposal.usage.input_tokens == server.counted()["input"]
    assert proposal.usage.cached_input_tokens == server.counted()["cached"]
    assert proposal.usage.output_tokens == server.counted()["output"]


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_an_overloaded_server_is_asked_again(serve, vendor, status):
    busy = {"status": status, "error": {"type": "overloaded_error", "message": "busy"}, "headers": {"retry-after": "0"}}
    server = serve(busy, busy, HAND_IN)
    proposal, calls, said = propose(vendor)
    assert proposal.title == "Add"
    assert len(server.requests()) == 3
    assert len(calls) == 1, "a request that was not served costs nothing"
    assert "asking again" in said


def test_a_server_that_stays_overloaded_ends_in_an_error_that_may_be_retried(serve, vendor, settings):
    settings.MODEL_RETRIES = 2
    server = serve({"status": 529, "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ProposerError, match=r"overloaded \(529\), 3 times in a row") as caught:
        propose(vendor)
    assert caught.value.retryable
    assert len(server.requests()) == 3


@pytest.mark.parametrize("how", ["clean", "reset"])
def test_a_stream_that_is_cut_is_asked_for_again_and_what_was_counted_is_paid(serve, vendor, how):
    cut = {"text": "x" * 2_000, "cut": how, "usage": USAGE}
    server = serve(cut, HAND_IN)
    proposal, calls, _ = propose(vendor)
    assert proposal.title == "Add"
    assert [call.outcome for call in calls] == ["cut", "answered"]
    assert counts_agree(server, calls, vendor)


def test_an_error_in_mid_stream_is_asked_again(serve, vendor):
    broken = {"text": "I think", "event_error": {"type": "overloaded_error", "message": "Overloaded"}, "usage": USAGE}
    serve(broken, HAND_IN)
    proposal, _, _ = propose(vendor)
    assert proposal.title == "Add"


def test_a_stream_that_falls_silent_counts_as_cut(serve, vendor, settings):
    settings.MODEL_SILENCE_S = 1
    server = serve({"text": "x" * 900, "cut": "silent", "usage": USAGE}, HAND_IN)
    proposal, calls, said = propose(vendor)
    assert proposal.title == "Add"
    assert "fell silent" in said
    assert counts_agree(server, calls, vendor)


def test_a_malformed_tool_call_is_told_and_repaired(serve, vendor):
    server = serve(
        {"tools": [{"name": "submit", "arguments": '{"title": "Add", "files": {"ke'}], "usage": USAGE}, HAND_IN
    )
    proposal, calls, _ = propose(vendor)
    assert proposal.title == "Add"
    assert "not JSON" in str(server.requests()[1]["body"]["messages"][-1])
    assert counts_agree(server, calls, vendor)


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ({"name": "approve", "arguments": {}}, "no tool"),
        ({"name": "submit", "arguments": {"title": "x"}}, "wants files"),
        ({"name": "submit", "arguments": []}, "JSON object"),
        (submit({"../kernel.cpp": BETTER}), "relative"),
        (submit({"notes.txt": "hello"}), "needs one kernel.cpp"),
        (submit({"kernel.cpp": START.replace("= 8;", "= 9;")}), "not among its choices"),
        ({"name": "read_attempt", "arguments": {"number": 77}}, "no attempt"),
        ({"name": "read_card", "arguments": {"name": "../../secret"}}, "no further card"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_wrong(serve, vendor, tool, told):
    server = serve({"tools": [tool], "usage": USAGE}, HAND_IN)
    proposal, _, _ = propose(vendor)
    assert proposal.title == "Add"
    assert told in str(server.requests()[1]["body"]["messages"][-1])


def test_a_model_that_never_makes_a_right_call_ends_in_an_error(serve, vendor):
    serve({"tools": [{"name": "submit", "arguments": "{{{"}], "usage": USAGE})
    with pytest.raises(ProposerError, match="4 wrong calls") as caught:
        propose(vendor)
    assert caught.value.retryable
    assert len(caught.value.calls) == 4


def test_a_model_that_only_talks_is_told_to_hand_in_and_then_given_up(serve, vendor):
    server = serve({"text": "What a nice kernel.", "usage": USAGE})
    with pytest.raises(ProposerError, match="handed nothing in"):
        propose(vendor)
    assert "Call `submit`" in str(server.requests()[1]["body"]["messages"][-1])


def test_a_refusal_is_an_error_that_says_so(serve, vendor):
    server = serve({"text": "I cannot help with that.", "stop": "refusal", "usage": USAGE})
    with pytest.raises(ProposerError, match="refused to answer: I cannot help") as caught:
        propose(vendor)
    assert caught.value.retryable
    assert [call.outcome for call in caught.value.calls] == ["refused"]
    assert counts_agree(server, caught.value.calls, vendor)


def test_a_wrong_model_is_not_asked_twice(serve, vendor):
    server = serve()
    with pytest.raises(ProposerError, match="knows no model 'gone'") as caught:
        propose(vendor, model="gone")
    assert not caught.value.retryable
    assert len(server.requests()) == 1


def test_a_wrong_key_is_named_by_its_endpoint_and_appears_nowhere(serve, vendor, caplog):
    echo = {"type": "authentication_error", "message": "Incorrect key: sk-ant-secret-of-the-test-0123456789"}
    server = serve({"status": 401, "error": echo})
    with caplog.at_level(logging.DEBUG), pytest.raises(ProposerError, match="did not accept the key") as caught:
        propose(vendor)
    assert not caught.value.retryable
    assert "secret-of-the-test" not in str(caught.value) + caplog.text + caught.value.said
    assert caught.value.__cause__ is None
    assert "secret-of-the-test" in server.requests()[0]["key"]


def test_a_key_that_the_server_repeats_is_blotted_out(serve, vendor):
    echo = {
        "type": "invalid_request_error",
        "message": "bad header sk-oai-secret-of-the-test-0123456789 and sk-ant-secret-of-the-test-0123456789",
    }
    serve({"status": 400, "error": echo})
    with pytest.raises(ProposerError, match="refused the request") as caught:
        propose(vendor)
    assert "secret-of-the-test" not in str(caught.value)


def test_an_account_without_credit_ends_it(serve, vendor):
    serve(
        {
            "status": 429,
            "error": {
                "type": "insufficient_quota",
                "code": "insufficient_quota",
                "message": "You exceeded your current quota",
            },
        }
    )
    with pytest.raises(ProposerError, match="no credit left") as caught:
        propose(vendor)
    assert not caught.value.retryable


def test_a_candidate_of_ten_thousand_tokens_comes_through_whole(serve, vendor):
    long = BETTER + "".join(f"// {n}: the quick brown fox jumps over the lazy dog\n" for n in range(1_000))
    assert len(long) > 45_000
    serve({"tools": [submit({"kernel.cpp": long})], "usage": USAGE})
    proposal, _, _ = propose(vendor)
    assert proposal.candidate.files["kernel.cpp"] == long


def test_an_answer_that_was_cut_at_its_longest_is_told(serve, vendor):
    stop = "max_tokens" if vendor == "anthropic" else "length"
    half = {"tools": [{"name": "submit", "arguments": '{"title": "Add", "fil'}], "stop": stop, "usage": USAGE}
    server = serve(half, HAND_IN)
    propose(vendor)
    assert "cut off at its longest" in str(server.requests()[1]["body"]["messages"][-1])


def test_thinking_streams_and_goes_back_but_is_no_rationale(serve, vendor):
    server = serve({"thinking": "Hmm, adds.", "text": "So.", "tools": [READ], "usage": USAGE}, HAND_IN)
    proposal, _, said = propose(vendor)
    assert said == "Hmm, adds.So."
    assert "Hmm" not in proposal.rationale
    back = server.requests()[1]["body"]["messages"]
    assert "Hmm, adds." in str(back)


def test_a_stop_ends_the_stream_within_a_second(serve, vendor):
    server = serve({"text": "x" * 40_000, "piece_s": 0.2, "usage": USAGE})
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    began = time.monotonic()
    with pytest.raises(ProposerError, match="Stopped") as caught:
        propose(vendor, should_stop=stop.is_set)
    assert time.monotonic() - began < 2.2
    assert [call.outcome for call in caught.value.calls] == ["stopped"]
    end = time.monotonic() + 2
    while not server.requests() and time.monotonic() < end:
        time.sleep(0.02)
    assert server.requests()[0]["gone"], "the server saw the connection close"
    assert counts_agree(server, caught.value.calls, vendor)


def test_a_stop_while_the_model_thinks_in_silence(serve, vendor):
    server = serve({"delay_s": 60, **HAND_IN})
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(ProposerError, match="Stopped"):
        propose(vendor, should_stop=stop.is_set)
    assert time.monotonic() - began < 1.7
    time.sleep(0.3)
    assert server.requests()[0]["gone"]


def test_a_stop_while_it_waits_to_ask_again(serve, vendor):
    serve({"status": 529, "headers": {"retry-after": "60"}})
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(ProposerError, match="Stopped"):
        propose(vendor, should_stop=stop.is_set)
    assert time.monotonic() - began < 1.7


def test_a_proposal_has_a_time_limit(serve, vendor, settings):
    settings.MODEL_PROPOSAL_LIMIT_S = 1
    serve({"delay_s": 30, **HAND_IN})
    with pytest.raises(ProposerError, match="No proposal within 1 s") as caught:
        propose(vendor)
    assert caught.value.retryable


def test_nobody_at_the_address(serve, vendor, monkeypatch, settings):
    settings.MODEL_RETRIES = 1
    serve()
    monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ProposerError, match=r"connection to 127.0.0.1:9 failed") as caught:
        propose(vendor)
    assert caught.value.retryable


def test_giving_up_ends_the_idea_with_its_reason(serve, vendor):
    serve(
        {
            "tools": [{"name": "give_up", "arguments": {"reason": "8 bytes a value: at the floor already."}}],
            "usage": USAGE,
        }
    )
    with pytest.raises(IdeaSpent, match="at the floor already"):
        propose(vendor)


def test_a_duplicate_is_refused_with_its_reason_and_another_may_be_tried(serve, vendor):
    desk = Desk(refusal=lambda c: "the same program as attempt 1 (reverted)." if c.files["kernel.cpp"] == START else "")
    server = serve({"tools": [submit({"kernel.cpp": START})], "usage": USAGE}, HAND_IN)
    proposal, _, _ = propose(vendor, desk=desk)
    assert proposal.candidate.files["kernel.cpp"] == BETTER
    assert "the same program as attempt 1" in str(server.requests()[1]["body"]["messages"][-1])


def test_a_model_without_tools_hands_in_code_blocks(serve, vendor):
    text = f"**Add, do not multiply**\nOne instruction less.\n```cpp\n{BETTER}```\n"
    server = serve({"text": text, "usage": USAGE})
    proposal, _, _ = propose(vendor, tools=False)
    assert proposal.candidate.files == {"kernel.cpp": BETTER}
    assert proposal.title == "Add, do not multiply"
    assert not server.requests()[0]["body"].get("tools")


def test_a_server_that_takes_no_tools_is_asked_without(serve, vendor):
    error = {"type": "invalid_request_error", "message": "tools are not supported by this model"}
    server = serve({"status": 400, "error": error}, {"text": f"Add\n```kernel.cpp\n{BETTER}```\n", "usage": USAGE})
    proposal, _, _ = propose(vendor)
    assert proposal.candidate.files == {"kernel.cpp": BETTER}
    assert not server.requests()[1]["body"].get("tools")


def test_a_server_that_counts_nothing_gives_unknown_not_zero(serve, vendor):
    serve({"tools": [submit()]})
    _, calls, _ = propose(vendor)
    if vendor == "openai":
        assert (calls[0].input_tokens, calls[0].output_tokens) == (None, None)
    assert calls[0].price_usd is None


def test_the_budget_in_tokens_shortens_the_answer_and_then_ends_it(serve, vendor):
    server = serve({**LOOK, "usage": {"input": 4_000, "output": 500}})
    with pytest.raises(Exhausted, match="budget for models is spent") as caught:
        propose(vendor, desk=Desk(tokens_left=20_000))
    spent = totals(caught.value.calls)
    assert 10_000 < spent["input"] + spent["output"] <= 20_000
    asked = [r["body"].get("max_tokens") for r in server.requests()]
    assert asked[0] < 20_000
    assert asked == sorted(asked, reverse=True)


def test_a_budget_in_dollars_wants_a_known_price(serve, vendor):
    server = serve(HAND_IN)
    with pytest.raises(ProposerError, match=r"price of m at .* is not known"):
        propose(vendor, desk=Desk(usd_left=1.0))
    assert not server.requests()


def test_a_known_model_is_priced_and_a_budget_in_dollars_is_kept(serve):
    server = serve(
        **{"claude-sonnet-5": [{**LOOK, "usage": {"input": 10_000, "cached": 0, "written": 0, "output": 1_000}}]}
    )
    with pytest.raises(Exhausted) as caught:
        propose("anthropic", model="claude-sonnet-5", desk=Desk(usd_left=0.5))
    paid = sum(float(call.price_usd) for call in caught.value.calls)
    assert caught.value.calls[0].price_usd * 1_000_000 == 10_000 * 2 + 1_000 * 10
    assert 0.3 < paid <= 0.5
    assert len(server.requests()) == len(caught.value.calls)


def test_the_prompt_is_marked_for_the_cache_and_its_stable_part_stays_the_same(serve):
    server = serve(LOOK, HAND_IN)
    propose("anthropic")
    propose("anthropic", make_task(number=3, idea="Another."))
    bodies = [r["body"] for r in server.requests()]
    assert all(b["system"][-1]["cache_control"] == {"type": "ephemeral"} for b in bodies)
    assert bodies[0]["system"] == bodies[-1]["system"]
    assert bodies[1]["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    marks = str(bodies[1]).count("cache_control")
    assert marks <= 4


def test_the_request_limit_of_a_host_holds_over_all_proposals(serve, vendor, settings):
    settings.MODEL_REQUESTS_AT_ONCE = 2
    server = serve({"delay_s": 0.4, **HAND_IN})
    threads = [threading.Thread(target=propose, args=(vendor,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests()) == 5
    assert max(r["at_once"] for r in server.requests()) == 2
