"""From a keep to two profiles on the attempt's page, through a real broker; the evaluator's part is played by its messages."""

from __future__ import annotations

import base64
import gzip
import json
import time
from pathlib import Path

import msgspec
import pytest

from campaigns import captures, conclusion, dispatch, progress
from campaigns.harness import worker
from campaigns.harness.capturing import Trace
from campaigns.harness.errors import Stopped
from campaigns.harness.inside.trace import MEASURED
from campaigns.models import Attempt, AttemptProfile, Phase
from profiling import importing
from profiling.models import Profile
from tests.factories import make_attempt, make_campaign
from tests.loop.test_conclusion import leave_report

pytestmark = pytest.mark.django_db(transaction=True)


def trace(role: str, at: int, **changes: object) -> Trace:
    events = [
        {"ph": "X", "cat": "user_annotation", "name": MEASURED, "pid": 1, "tid": 1, "ts": at + n * 10, "dur": 5}
        for n in range(5)
    ]
    content = gzip.compress(json.dumps({"traceEvents": events}).encode(), mtime=0)
    return Trace(**{"role": role, "tool": "torch", "workload": "w", "host": "h", "content": content, **changes})


@pytest.fixture
def kept(at_broker, settings, tmp_path: Path) -> Attempt:
    settings.MEDIA_ROOT = tmp_path
    campaign = make_campaign()
    attempt = make_attempt(campaign, phase=Phase.READY, files=campaign.start_files, backend="cpp")
    assert progress.send_out(attempt)
    at_broker.delete(campaign.queue)
    leave_report(at_broker, attempt)
    conclusion.conclude(attempt.ticket)
    attempt.refresh_from_db()
    assert attempt.verdict == "kept"
    return attempt


def left(at_broker, attempt: Attempt, *traces: Trace) -> None:
    at_broker.rpush(f"capture:{attempt.ticket}:traces", *map(msgspec.msgpack.encode, traces))


def test_a_keep_asks_for_both_profiles(kept, at_broker):
    messages = [m for m in at_broker.lrange(kept.campaign.queue, 0, -1) if b'"capture"' in m]
    assert len(messages) == 1
    assert [(row.role, row.profile) for row in kept.profiles.all()] == [("baseline", None), ("candidate", None)]
    assert [side.word for side in captures.pair(kept).sides] == ["being taken", "being taken"]


def test_traces_become_profiles_that_open_side_by_side(kept, at_broker, client, django_user_model):
    left(at_broker, kept, trace("candidate", 0), trace("baseline", 7))
    captures.attach(kept.ticket)
    captures.attach(kept.ticket)
    assert Profile.objects.count() == 2
    assert at_broker.keys("capture:*") == []
    for profile in Profile.objects.all():
        assert importing.run(str(profile.pk))
    pair = captures.pair(kept)
    assert not AttemptProfile.objects.filter(**captures.OPEN).exists()
    client.force_login(django_user_model.objects.create_user("ann"))
    page = client.get(kept.get_absolute_url()).content.decode()
    assert pair.compare.replace("&", "&amp;") in page
    compared = client.get(pair.compare)
    assert compared.status_code == 200
    assert compared.context["result"]["a"]["occurrences"] == compared.context["result"]["b"]["occurrences"] == 5
    assert compared.context["timelines"]["a"]["name"].endswith("baseline, torch.json.gz")
    assert compared.context["result"]["verdict"] == "same"
    text = compared.content.decode()
    assert "times of the host" in text
    assert "GPU busy" not in text


def test_what_the_verdict_measured_stands_before_what_the_captures_show(kept, at_broker, client, django_user_model):
    row = kept.measurements.first()
    row.speedup, row.speedup_lo, row.speedup_hi, row.time_us, row.baseline_us = 1.35, 1.3, 1.4, 22.7, 30.8
    row.save()
    left(at_broker, kept, trace("candidate", 0, workload=row.workload), trace("baseline", 7, workload=row.workload))
    captures.attach(kept.ticket)
    for profile in Profile.objects.all():
        assert importing.run(str(profile.pk))
    client.force_login(django_user_model.objects.create_user("ann"))
    text = client.get(captures.pair(kept).compare).content.decode()
    measured, shown = text.index("What the verdict measured"), text.index("What the captures show")
    assert measured < text.index("1.35×") < shown < text.index("Under the profiler:")
    assert measured < text.index("30.8\u00a0µs") < shown


def test_what_went_wrong_stands_where_the_profile_would(kept, at_broker):
    left(at_broker, kept, trace("candidate", 0, content=b"", problem="CUPTI <is> missing"), trace("baseline", 7))
    captures.attach(kept.ticket)
    words = {side.role: side.word for side in captures.pair(kept).sides}
    assert words == {"baseline": "waiting for import", "candidate": "not profiled: CUPTI <is> missing"}
    kept.refresh_from_db()
    assert kept.verdict == "kept"


def test_rubbish_at_the_broker_is_said_and_harms_nothing(kept, at_broker):
    at_broker.rpush(f"capture:{kept.ticket}:traces", b"\xc1 no msgpack")
    captures.attach(kept.ticket)
    assert "could not be read" in kept.profiles.get(role="candidate").problem


def test_the_baseline_is_profiled_once_for_each_campaign_and_host(kept, at_broker):
    left(at_broker, kept, trace("candidate", 0, host=kept.host), trace("baseline", 7, host=kept.host))
    captures.attach(kept.ticket)
    second = make_attempt(kept.campaign, "kept", host=kept.host)
    captures.ask(second)
    assert [row.role for row in second.profiles.all()] == ["candidate"]
    baseline = kept.profiles.get(role="baseline").profile
    assert [side.profile for side in captures.pair(second).sides] == [baseline, None]


def test_profiles_that_are_lost_with_their_evaluator_are_asked_for_again_but_not_for_ever(kept, at_broker, settings):
    settings.LOST_AFTER_S = 0
    for tries in (1, 2, 3):
        assert {row.tries for row in kept.profiles.all()} == {tries}
        captures.watch()  # the message waits: nothing is lost
        assert len(at_broker.lrange(kept.campaign.queue, 0, -1)) == 1
        at_broker.delete(kept.campaign.queue)  # an evaluator took it …
        at_broker.set(f"capture:{kept.ticket}:alive", "{}")
        captures.watch()
        assert at_broker.llen(kept.campaign.queue) == 0
        at_broker.delete(f"capture:{kept.ticket}:alive")  # … and died
        captures.watch()
    assert at_broker.llen(kept.campaign.queue) == 0
    words = {side.word for side in captures.pair(kept).sides}
    assert words == {"not profiled: 3 evaluators were lost while they took it"}


def test_traces_whose_message_was_lost_are_taken_in(kept, at_broker, settings):
    settings.LOST_AFTER_S = 0
    at_broker.delete(kept.campaign.queue)
    left(at_broker, kept, trace("candidate", 0), trace("baseline", 7))
    captures.watch()
    assert at_broker.llen("profiles") == 1
    assert at_broker.llen(kept.campaign.queue) == 0


def test_profiles_let_evaluations_go_first_and_are_taken_one_by_one(kept, at_broker, monkeypatch):
    queue = kept.campaign.queue
    (message,) = at_broker.lrange(queue, 0, -1)
    ticket, body, roles = json.loads(base64.b64decode(json.loads(message)["body"]))[0]
    monkeypatch.setattr(worker, "broker", lambda: at_broker)
    monkeypatch.setattr(worker.app, "send_task", dispatch.app.send_task)
    monkeypatch.setattr(worker, "die_with_parent", lambda: None)
    for quiet in ("QUIET_S", "OTHERS_QUIET_S"):  # whatever was evaluated in this process before
        monkeypatch.setattr(worker, quiet, 0.0)
    asked: list[tuple[str, str]] = []

    def capture(request, roles, should_stop, taken):
        for role in roles:
            if (role, "torch") not in taken:
                asked.append((role, "torch"))
                if comes:  # in the middle of it
                    comes.clear()
                    assert progress.send_out(
                        make_attempt(kept.campaign, phase=Phase.READY, files=kept.campaign.start_files)
                    )
                    time.sleep(2 * worker.LOOK_S)
                if should_stop():
                    raise Stopped
                yield trace(role, 0 if role == "candidate" else 7)

    monkeypatch.setattr(worker.capturing, "capture", capture)

    def deliver(*more: float) -> None:
        at_broker.delete(queue)
        worker.capture_ticket.push_request(delivery_info={"routing_key": queue})
        if waiting:
            assert progress.send_out(make_attempt(kept.campaign, phase=Phase.READY, files=kept.campaign.start_files))
        worker.capture_ticket.run(ticket, body, roles, *more)
        worker.capture_ticket.pop_request()

    waiting, comes = True, []
    deliver()
    assert asked == []  # put off, behind the evaluation
    assert [b'"task": "capture"' in m for m in reversed(at_broker.lrange(queue, 0, -1))] == [False, True]
    deliver(1.0)  # for too long: one is taken
    assert asked == [("candidate", "torch")]
    assert at_broker.llen(queue) == 2
    waiting, comes = False, [True]
    deliver()
    assert asked == [("candidate", "torch"), ("baseline", "torch")]
    assert at_broker.llen(queue) == 2  # given up for the evaluation that came, and asked for again
    deliver()
    assert asked == [("candidate", "torch"), ("baseline", "torch"), ("baseline", "torch")]
    assert at_broker.llen(queue) == 0
    captures.attach(kept.ticket)
    assert {side.word for side in captures.pair(kept).sides} == {"waiting for import"}
    assert at_broker.llen(f"capture:{kept.ticket}:traces") == 0


def test_a_trace_that_comes_while_another_is_taken_in_twice_is_not_lost(kept, at_broker, monkeypatch):
    """Two messages for one trace are worked on at once, and a second trace comes in between."""
    left(at_broker, kept, trace("candidate", 0))
    take, came = captures.attach_one, []

    def slowly(attempt, found):
        take(attempt, found)
        if not came:
            came.append(found.role)
            captures.attach(attempt.ticket)  # the other worker, faster
            left(at_broker, attempt, trace("baseline", 7))

    monkeypatch.setattr(captures, "attach_one", slowly)
    captures.attach(kept.ticket)
    captures.attach(kept.ticket)
    assert {side.word for side in captures.pair(kept).sides} == {"waiting for import"}
    assert at_broker.keys(f"capture:{kept.ticket}:traces") == []


def test_a_broker_that_is_gone_costs_the_profile_and_nothing_else(kept, monkeypatch):
    def gone(*args: object, **more: object) -> None:
        raise OSError("no broker")

    monkeypatch.setattr("campaigns.dispatch.app.send_task", gone)
    captures.ask(kept)


def test_a_setting_turns_it_off(kept, settings):
    settings.PROFILE_KEPT = False
    kept.profiles.all().delete()
    captures.ask(kept)
    assert captures.pair(kept) is None
