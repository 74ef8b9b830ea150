from __future__ import annotations

import base64
import json
from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from campaigns import actions, conclusion, dispatch, progress, watching
from campaigns.harness import report as reports
from campaigns.harness.report import Confirmation, Ratio
from campaigns.models import Attempt, Event, Phase
from profiling.silence import clock
from tests.factories import make_attempt, make_campaign, make_report, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(at_broker) -> Attempt:
    """An attempt that was sent out and whose message lies in the queue."""
    campaign = make_campaign()
    files = campaign.start_files
    attempt = make_attempt(campaign, phase=Phase.READY, files=files, backend="cpp")
    assert progress.send_out(attempt)
    return attempt


def leave_report(at_broker, attempt: Attempt, verdict: str = "kept", **changes) -> None:
    report = make_report(attempt.campaign, verdict, [], 1)
    again = Confirmation(speedup=report.speedup, over_incumbent=report.over_incumbent, noise=report.noise, correct=True)
    report = msgspec.structs.replace(report, **{"confirmation": again, **changes})
    at_broker.set(f"evaluation:{attempt.ticket}:report", reports.encode(report))


def judged_events(attempt: Attempt) -> int:
    return Event.objects.filter(attempt=attempt, kind="attempt.judged").count()


def test_the_message_holds_all_that_an_evaluator_needs(sent, at_broker):
    assert dispatch.is_waiting(sent.ticket, "gpu.cpu")
    (message,) = at_broker.lrange("gpu.cpu", 0, -1)
    assert sent.ticket.encode() in message


def test_a_report_becomes_a_verdict_once(sent, at_broker):
    leave_report(at_broker, sent)
    conclusion.conclude(sent.ticket)
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    assert (sent.verdict, sent.phase) == ("kept", "judged")
    assert sent.campaign.__class__.objects.get(pk=sent.campaign_id).incumbent_id == sent.pk
    assert judged_events(sent) == 1
    assert sent.measurements.count() > 0
    assert at_broker.keys("evaluation:*:report") == []


def test_a_report_for_an_older_ticket_is_dropped(sent, at_broker):
    old = sent.ticket
    leave_report(at_broker, sent)
    assert progress.send_out(sent, from_=Phase.EVALUATING)
    conclusion.conclude(old)
    sent.refresh_from_db()
    assert (sent.verdict, sent.phase) == ("", "evaluating")
    assert at_broker.get(f"evaluation:{old}:cancelled")


def test_a_keep_over_an_incumbent_that_was_beaten_since_is_measured_again(sent, at_broker):
    ticket = sent.ticket
    newer = make_attempt(sent.campaign, "kept")
    leave_report(at_broker, sent)
    conclusion.conclude(ticket)
    sent.refresh_from_db()
    assert (sent.verdict, sent.phase, sent.parent_id) == ("", "evaluating", newer.pk)
    assert sent.ticket != ticket


def test_a_failure_of_the_harness_is_tried_again_and_is_never_a_number(sent, at_broker):
    for _ in range(dispatch.MAX_TRIES):
        assert sent.verdict == ""
        leave_report(at_broker, sent, outcome="infrastructure", summary="the GPU fell off the bus", speedup=None)
        conclusion.conclude(sent.ticket)
        sent.refresh_from_db()
    assert (sent.verdict, sent.speedup) == ("no_measurement", None)
    assert judged_events(sent) == 1


def test_a_report_that_cannot_be_read_is_no_measurement(sent, at_broker):
    at_broker.set(f"evaluation:{sent.ticket}:report", b'{"outcome": "measured"}')
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    assert sent.verdict == "no_measurement"
    assert "could not be read" in sent.reason


def test_an_attempt_that_nobody_waits_for_is_not_judged(sent, at_broker):
    progress.drop(sent, "the campaign ended")
    leave_report(at_broker, sent)
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    assert (sent.verdict, sent.phase) == ("", "dropped")


def quiet_for_long(attempt: Attempt) -> None:
    past = attempt.created_at.replace(year=2020)
    Attempt.objects.filter(pk=attempt.pk).update(sent_at=past, evaluation_started_at=past)
    attempt.refresh_from_db()


def test_an_evaluation_that_waits_in_the_queue_is_left_there(sent):
    quiet_for_long(sent)
    ticket = sent.ticket
    watching.look_after(sent)
    sent.refresh_from_db()
    assert sent.ticket == ticket


def test_an_evaluation_whose_worker_is_gone_is_sent_out_again(sent, at_broker):
    at_broker.delete("gpu.cpu")
    quiet_for_long(sent)
    ticket = sent.ticket
    watching.look_after(sent)
    sent.refresh_from_db()
    assert sent.ticket != ticket
    assert sent.tries == 2


def test_once_the_clock_was_set_everybody_has_time_to_speak_before_they_count_as_lost(sent, at_broker, monkeypatch):
    at_broker.delete("gpu.cpu")
    quiet_for_long(sent)
    ticket = sent.ticket
    monkeypatch.setattr(clock, "jumped_at_s", float("-inf"))
    monkeypatch.setattr(clock, "offset_s", clock.look() - 3 * 3600)
    watching.watch()
    sent.refresh_from_db()
    assert sent.ticket == ticket
    clock.jumped_at_s -= 3600
    watching.watch()
    sent.refresh_from_db()
    assert sent.ticket != ticket


def test_a_worker_that_is_gone_is_found_though_the_clock_was_set_back_since(sent, at_broker):
    at_broker.delete("gpu.cpu")
    Attempt.objects.filter(pk=sent.pk).update(sent_at=timezone.now() + timedelta(hours=1))
    watching.find_lost()
    sent.refresh_from_db()
    assert sent.tries == 2


def test_one_that_is_alive_is_left_alone(sent, at_broker):
    at_broker.delete("gpu.cpu")
    at_broker.set(f"evaluation:{sent.ticket}:alive", '{"stage": "timing"}')
    quiet_for_long(sent)
    ticket = sent.ticket
    watching.look_after(sent)
    sent.refresh_from_db()
    assert sent.ticket == ticket


def test_after_too_many_lost_workers_there_is_no_measurement(sent, at_broker):
    at_broker.delete("gpu.cpu")
    Attempt.objects.filter(pk=sent.pk).update(tries=dispatch.MAX_TRIES)
    quiet_for_long(sent)
    watching.look_after(sent)
    sent.refresh_from_db()
    assert (sent.verdict, sent.speedup) == ("no_measurement", None)
    assert "were lost" in sent.reason


def test_a_report_whose_message_was_lost_is_found(sent, at_broker):
    leave_report(at_broker, sent, over_incumbent=Ratio(value=1.2, lo=1.19, hi=1.21))
    watching.look_after(sent)
    sent.refresh_from_db()
    assert sent.phase == "judged"


def test_a_flagged_attempt_is_judged_again_once_when_its_last_blocking_flag_is_dismissed(sent, at_broker):
    block = reports.Finding(rule="decoy-kernel", severity="block", evidence="nothing is launched")
    leave_report(at_broker, sent, findings=[block], speedup=None)
    conclusion.conclude(sent.ticket)
    first = sent.ticket
    (flag,) = sent.flags.all()

    actions.decide_flag(flag, person("ada"), state="dismissed", reason="it is launched by another name")
    with pytest.raises(actions.ActionError):
        actions.decide_flag(flag, person("grace"), state="dismissed", reason="me too")

    sent.refresh_from_db()
    assert (sent.verdict, sent.phase) == ("", "evaluating")
    assert sent.ticket != first
    message = json.loads(at_broker.lrange("gpu.cpu", 0, -1)[0])
    _, request = json.loads(base64.b64decode(message["body"]))[0]
    assert request["dismissed"] == ["decoy-kernel"]
    noted = msgspec.structs.replace(block, severity="note", data={"dismissed": True})
    leave_report(at_broker, sent, findings=[noted])
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    assert sent.verdict == "kept"
    assert [(f.rule, f.state) for f in sent.flags.all()] == [("decoy-kernel", "dismissed")]
    assert sent.measurements.values("workload").distinct().count() == sent.measurements.count()
    reasons = [e.data.get("reason") for e in Event.objects.filter(attempt=sent, kind="attempt.evaluating")]
    assert reasons[-1] == "ada dismissed the flag decoy-kernel"


def test_one_of_two_blocking_flags_dismissed_sends_nothing_out(sent, at_broker):
    findings = [reports.Finding(rule=rule, severity="block", evidence="so") for rule in ("threads", "files")]
    leave_report(at_broker, sent, findings=findings, speedup=None)
    conclusion.conclude(sent.ticket)

    actions.decide_flag(sent.flags.first(), person("ada"), state="dismissed", reason="no thread there")

    sent.refresh_from_db()
    assert (sent.verdict, sent.phase) == ("flagged", "judged")


def test_a_keep_for_a_range_leaves_the_incumbent_where_it_is(sent, at_broker):
    ratio = Ratio(value=1.2, lo=1.15, hi=1.25)
    names = [row.name for row in make_report(sent.campaign, "kept", [], 1).workloads if row.over_incumbent]
    won = reports.RangeWin(
        axis="rows",
        lo=1,
        hi=8,
        workloads=names,
        speedup=ratio,
        over_incumbent=ratio,
        noise=Ratio(value=1, lo=0.999, hi=1.001),
    )
    slower = Ratio(value=0.9, lo=0.88, hi=0.92)
    leave_report(at_broker, sent, over_incumbent=slower, range=won)
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    assert (sent.verdict, sent.ranges) == ("kept", [{"axis": "rows", "lo": 1, "hi": 8}])
    assert sent.campaign.__class__.objects.get(pk=sent.campaign_id).incumbent_id is None


def test_a_copy_of_an_incumbent_that_slowed_down_is_not_kept_until_a_person_dismisses_that(sent, at_broker):
    leave_report(at_broker, sent)
    conclusion.conclude(sent.ticket)
    sent.refresh_from_db()
    Attempt.objects.filter(pk=sent.pk).update(speedup=90.0, speedup_lo=85.0, speedup_hi=95.0)
    copy = make_attempt(sent.campaign, phase=Phase.READY, files=sent.files, backend="cpp")
    assert progress.send_out(copy)
    leave_report(at_broker, copy, host=reports.decode(sent.report.encode()).host)
    conclusion.conclude(copy.ticket)
    copy.refresh_from_db()

    assert (copy.verdict, [f.rule for f in copy.flags.filter(severity="block")]) == ("flagged", ["incumbent-slowed"])
    assert copy.campaign.__class__.objects.get(pk=copy.campaign_id).incumbent_id == sent.pk

    actions.decide_flag(
        copy.flags.get(rule="incumbent-slowed"), person("ada"), state="dismissed", reason="another load"
    )
    copy.refresh_from_db()
    leave_report(at_broker, copy, host=reports.decode(sent.report.encode()).host)
    conclusion.conclude(copy.ticket)
    copy.refresh_from_db()

    assert copy.verdict == "kept"
