"""A judged attempt measured once more, with a real broker; and the re-measurement that follows a change of versions."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from campaigns import actions, conclusion, hosts, judge, remeasuring
from campaigns.actions import ActionError
from campaigns.harness import report as reports
from campaigns.harness.report import Confirmation, Host, Ratio
from campaigns.models import Attempt, Cause, EvaluatorHost, Kernel, Remeasurement
from tests.factories import make_attempt, make_campaign, make_report, person

pytestmark = pytest.mark.django_db(transaction=True)
OLD = {"torch": "2.10.0", "triton": "3.5.0"}
NEW = {"torch": "2.11.0", "triton": "3.6.0"}


def host_with(versions: dict[str, str]) -> Host:
    return Host(name="bench-1", kind="cpu", processor="EPYC 9354", versions=versions, sandbox="bubblewrap")


def a_report(campaign, verdict: str = "kept", speedup: float = 2.31, versions: dict[str, str] = OLD):
    report = make_report(
        campaign, verdict, [], speedup=speedup if verdict == "kept" else None, host=host_with(versions)
    )
    again = Confirmation(speedup=report.speedup, over_incumbent=report.over_incumbent, noise=report.noise, correct=True)
    return msgspec.structs.replace(report, confirmation=again if verdict == "kept" else None)


@pytest.fixture
def kept(at_broker) -> Attempt:
    campaign = make_campaign()
    return make_attempt(campaign, "kept", report=a_report(campaign))


def approve(attempt: Attempt, who: str = "grace") -> None:
    attempt.refresh_from_db()
    actions.approve(attempt, person(who), seen=attempt.decision_seq, sha256=attempt.signed_sha256())


def answer(at_broker, row: Remeasurement, report) -> Remeasurement:
    at_broker.set(f"evaluation:{row.ticket}:report", reports.encode(report))
    conclusion.conclude(row.ticket)
    row.refresh_from_db()
    return row


def test_the_attempt_and_what_was_signed_stay_as_they_are(kept, at_broker):
    approve(kept)
    signed = kept.signed_sha256()
    row = answer(at_broker, remeasuring.ask(kept, person("ada")), a_report(kept.campaign, speedup=1.9))
    kept.refresh_from_db()
    assert (kept.speedup, kept.signed_sha256(), kept.reviews.get().is_stale()) == (2.31, signed, False)
    assert (row.holds, row.speedup) == (False, 1.9)
    assert "slower than it was: 1.900×" in row.reason


def test_only_one_is_under_way_at_a_time(kept, at_broker):
    first = remeasuring.ask(kept, None)
    with pytest.raises(ActionError, match="already"):
        remeasuring.ask(kept, None)
    answer(at_broker, first, a_report(kept.campaign))
    assert remeasuring.ask(kept, None).pk != first.pk


def test_a_report_counts_once_and_an_unreadable_one_is_no_number(kept, at_broker):
    row = remeasuring.ask(kept, None)
    at_broker.set(f"evaluation:{row.ticket}:report", "{}")
    conclusion.conclude(row.ticket)
    row.refresh_from_db()
    assert (row.state, row.holds, row.speedup) == ("failed", None, None)
    assert answer(at_broker, row, a_report(kept.campaign)).state == "failed"


def test_one_that_was_lost_with_its_worker_is_sent_out_again_and_given_up_in_the_end(kept, at_broker):
    row = remeasuring.ask(kept, None)
    for tries in (2, 3):
        old = row.ticket
        lose(at_broker, row)
        remeasuring.watch()
        row.refresh_from_db()
        assert (row.tries, row.state) == (tries, "waiting")
        assert row.ticket != old
        assert at_broker.exists(f"evaluation:{old}:cancelled")
    lose(at_broker, row)
    remeasuring.watch()
    row.refresh_from_db()
    assert (row.state, row.holds) == ("failed", None)


def lose(at_broker, row: Remeasurement) -> None:
    at_broker.delete("gpu.cpu")
    Remeasurement.objects.filter(pk=row.pk).update(sent_at=timezone.now() - timedelta(hours=1))


@pytest.mark.parametrize(("verdict", "speedup", "holds", "why"), [
    ("kept", 2.31, True, "over the baseline"),
    ("kept", 2.5, True, "over the baseline"),
    ("kept", 0.97, False, "slower than it was"),
    ("incorrect", None, False, "incorrect"),
    ("build_failed", None, False, "build failed"),
    ("infrastructure", None, None, ""),
])  # fmt: skip
def test_what_holds_and_what_does_not(kept, verdict, speedup, holds, why):
    report = a_report(kept.campaign, verdict, speedup or 2.31)
    found, reason = remeasuring.still_holds(kept, report, judge.judge(report))
    assert found is holds
    assert why in reason


def test_a_wide_interval_that_touches_the_baseline_no_longer_holds(kept):
    report = msgspec.structs.replace(a_report(kept.campaign), speedup=Ratio(value=1.8, lo=0.9, hi=3.5))
    found, reason = remeasuring.still_holds(kept, report, judge.judge(report))
    assert (found, "no longer told apart" in reason) == (False, True)


def say(versions: dict[str, str]) -> EvaluatorHost:
    return hosts.note({"queue": "gpu.cpu", "about": msgspec.to_builtins(host_with(versions)), "gpu": {}})


def test_another_torch_has_kernels_in_force_measured_again_a_few_at_a_time_and_once(at_broker):
    attempts = []
    for number in range(3):
        campaign = make_campaign(title=f"campaign {number}")
        attempts.append(make_attempt(campaign, "kept", report=a_report(campaign)))
        approve(attempts[-1])
    say(OLD)
    hosts.measure_again(EvaluatorHost.objects.get())
    assert not Remeasurement.objects.exists(), "they were measured with these"
    say(NEW)
    host = EvaluatorHost.objects.get()
    assert host.versions_before == "torch 2.10.0, triton 3.5.0"
    for _ in range(3):
        hosts.measure_again(EvaluatorHost.objects.get())
    assert Remeasurement.objects.count() == hosts.AT_ONCE
    for row in Remeasurement.objects.all():
        answer(at_broker, row, a_report(row.attempt.campaign, versions=NEW))
    hosts.measure_again(EvaluatorHost.objects.get())
    last = Remeasurement.objects.get(state="waiting")
    answer(at_broker, last, a_report(last.attempt.campaign, "incorrect", versions=NEW))
    for _ in range(2):
        hosts.measure_again(EvaluatorHost.objects.get())
    assert set(Remeasurement.objects.values_list("attempt", "cause")) == {(a.pk, Cause.VERSIONS) for a in attempts}
    assert EvaluatorHost.objects.get().checked == "torch 2.11.0, triton 3.6.0"
    assert [item["kernel"].review.attempt_id for item in hosts.broken()] == [last.attempt_id]
    Kernel.objects.filter(review__attempt=last.attempt_id).update(withdrawn_at=timezone.now())
    assert hosts.broken() == []


def test_a_host_is_known_by_what_lies_at_the_broker(at_broker):
    said = {"queue": "gpu.cpu", "about": msgspec.to_builtins(host_with(OLD)), "gpu": {}}
    at_broker.sadd("evaluators", "gpu.cpu bench-1", "gpu.cpu gone")
    at_broker.set("evaluator:gpu.cpu bench-1", msgspec.json.encode(said))
    hosts.watch()
    hosts.watch()
    host = EvaluatorHost.objects.get()
    assert (host.name, host.fingerprint, host.is_silent()) == ("bench-1", "torch 2.10.0, triton 3.5.0", False)
