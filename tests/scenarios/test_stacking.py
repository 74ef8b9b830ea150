"""Which approved kernels a scenario takes, and what becomes of a measurement's answer."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from campaigns import library
from campaigns.actions import ActionError
from campaigns.harness.hosts import this_host
from campaigns.harness.report import Ratio
from campaigns.models import Attempt, EvaluatorHost, StackMeasurement, StackState
from campaigns.scenarios import catalogue, stacking
from campaigns.scenarios.request import Base, Parity, StackReport, Stage, Trial, encode
from campaigns.scenarios.variants import Variant
from tests.archive import samples
from tests.library.conftest import approved

from .kernels import kernel

pytestmark = pytest.mark.django_db


def ratio(value):
    return Ratio(value=value, lo=value * 0.98, hi=value * 1.02)


def a_report(**more):
    fine = Parity(steps=8, agreed=8, ties=0, error=1e-6, tolerance=2e-4, passed=True)
    made = Stage(
        kernel="k", operator="rmsnorm", label="<b>one pass</b>", time_us=800.0, over_base=ratio(1.25), gain=ratio(1.25),
        saved_us=200.0, share=ratio(0.3), ceiling=1.3, limit=1.43, parity=fine,
    )  # fmt: skip
    values = {
        "scenario": "tiny", "workload": "tiny", "axes": {"steps": 4}, "files_sha256": "x", "host": this_host("cpu"),
        "base": "compile",
        "bases": [Base(name="eager", time_us=1200.0), Base(name="compile", time_us=1000.0)], "base_us": 1000.0, "stages": [made],
        "left_out": [], "noise": ratio(1.0), "floor_us": 400.0, "bytes_per_step": 1e7, "peaks": {"copy_bytes_per_s": 2.5e10},
    }  # fmt: skip
    return StackReport(**{**values, **more})


def chosen():
    request, _kernels, others = stacking.request_for(catalogue.find("tiny"))
    return request.kernels, [o["why"] for o in others]


def test_approved_kernels_come_in_the_order_of_their_approval():
    approved("mla_decode")
    approved("rmsnorm")
    found, others = chosen()
    assert [k.operator for k in found] == ["mla_decode", "rmsnorm"]
    assert found[1].axes == [1, 128]
    assert found[1].speedup.value == 2.0
    assert others == []


def test_of_two_for_one_operator_the_faster_one_here_is_taken():
    approved("rmsnorm", speedup=1.5)
    fast = approved("rmsnorm", "torch", speedup=3.0)
    found, others = chosen()
    assert [k.id for k in found] == [fast.sha256[:12]]
    assert others == ["another one is faster here (3.00×)"]


def test_what_does_not_serve_at_these_axes_is_named_with_the_reason():
    approved("rmsnorm", range_={"axis": "rows", "lo": 2, "hi": 512})
    slow = approved("mla_decode")
    slow.attempt.measurements.update(speedup=0.8)
    found, others = chosen()
    assert found == []
    assert sorted(others) == [
        "rows = 1 is outside the approved 2 to 512",
        "was not faster near here (0.80× at batch 1, heads 4, tokens 1024)",
    ]


def test_a_withdrawn_kernel_is_not_in_the_stack():
    approved("rmsnorm")
    library.withdraw(library.kernels()[0], samples.person(), "x")
    assert chosen() == ([], [])


def stacked(operator, number=1):
    """A candidate that was right, and not told apart from its incumbent."""
    made = samples.campaign(operator)
    attempt = samples.judged(made, made.start_candidate(), number=number)
    Attempt.objects.filter(pk=attempt.pk).update(verdict="stacked", over_incumbent=1.004)
    return Attempt.objects.get(pk=attempt.pk)


@pytest.fixture
def sent(monkeypatch):
    """What goes to the evaluator's queue, in place of a broker."""
    bodies = []
    monkeypatch.setattr(stacking, "send", lambda ticket, body, queue: bodies.append(body))
    return bodies


def test_stacked_candidates_are_offered_and_tried_on_top_of_what_is_approved(
    sent, browser, django_capture_on_commit_callbacks
):
    approved("mla_decode")
    better, norm = stacked("mla_decode"), stacked("rmsnorm")
    assert [a.pk for a, _ in stacking.offered(catalogue.find("tiny"))] == [better.pk, norm.pk]
    with django_capture_on_commit_callbacks(execute=True):
        browser.post("/stack/tiny/together", {"attempt": [better.pk, norm.pk]})
    (body,) = sent
    assert [k["operator"] for k in body["kernels"]] == ["mla_decode", "mla_decode", "rmsnorm"]
    assert list(body["tried"]) == [better.trial_id, norm.trial_id]
    row = StackMeasurement.objects.get()
    assert set(row.tried.all()) == {better, norm}


def test_one_candidate_or_two_of_one_operator_are_no_combination(sent):
    one, other = stacked("rmsnorm"), stacked("rmsnorm")
    for chosen_ones in ([one.pk], [one.pk, other.pk], [one.pk, 10**6]):
        with pytest.raises(ActionError):
            stacking.try_together("tiny", chosen_ones, None)
    assert sent == []


def held(attempts, holds):
    trial = Trial(
        kernels=[a.trial_id for a in attempts], gain=ratio(1.1 if holds else 1.0), holds=holds, why="a + b: …"
    )
    row = StackMeasurement.objects.create(
        scenario="tiny", hardware="cpu", ticket="tried", state="done", report=encode(a_report(trial=trial)).decode()
    )
    row.tried.set(attempts)
    return row


def test_what_holds_together_can_be_approved_and_what_does_not_cannot(browser):
    both = [stacked("mla_decode"), stacked("rmsnorm")]
    row = held(both, False)
    with pytest.raises(ActionError, match="only kept"):
        samples.approve(both[0])
    page = browser.get("/stack/").content.decode()
    assert "✕ does not" in page
    assert "Not measured yet" in page, "a trial is not the stack"
    row.delete()
    held(both, True)
    assert "holds together" in browser.get("/stack/").content.decode()
    assert "Approve" in browser.get(f"/review/{both[0].pk}/").content.decode()
    samples.approve(both[0])
    assert [k.operator for k in library.kernels() if k.in_force()] == ["mla_decode"]


def test_of_two_kernels_for_one_operator_the_later_one_is_in_the_step():
    first, last = (kernel("rmsnorm", {"kernel.py": f"# {n}\n"}, "torch", id=str(n)) for n in (1, 2))
    built = Variant("x", files=catalogue.find("tiny").problem.files, kernels=(first, last)).built()
    assert [data for path, data in built.files.items() if path.startswith("kernels/")] == [b"# 2\n"]


@pytest.fixture
def answered(monkeypatch):
    """The broker's two words, without a broker: what lies under a ticket, and its removal."""
    lying = {}
    monkeypatch.setattr("campaigns.dispatch.report_of", lying.get)
    monkeypatch.setattr("campaigns.dispatch.forget", lambda ticket: lying.pop(ticket, None))
    return lying


def waiting(ticket="t"):
    return StackMeasurement.objects.create(scenario="tiny", hardware="cpu", ticket=ticket)


def test_a_report_is_kept_once(answered):
    row = waiting()
    answered["t"] = msgspec.json.encode({"report": msgspec.to_builtins(a_report())})
    stacking.conclude("t")
    row.refresh_from_db()
    assert (row.state, row.parsed_report()) == (StackState.DONE, a_report())
    answered["t"] = msgspec.json.encode({"error": "late"})
    stacking.conclude("t")
    row.refresh_from_db()
    assert (row.state, row.error) == (StackState.DONE, "")


def test_a_measurement_that_is_lost_with_its_evaluator_is_asked_for_again_but_not_for_ever(sent, monkeypatch, settings):
    for name in ("report_of", "alive", "is_waiting", "cancel"):
        monkeypatch.setattr(f"campaigns.dispatch.{name}", lambda *_: None)
    settings.LOST_AFTER_S = 0
    waiting()
    for _ in range(5):
        stacking.watch()
    rows = list(StackMeasurement.objects.order_by("id"))
    assert [row.state for row in rows] == [StackState.FAILED] * 3
    assert rows[-1].error.endswith("3 times in a row")


@pytest.mark.parametrize(("answer", "error"), [
    (b'{"error": "the machine is busy"}', "the machine is busy"),
    (b"nonsense", "could not be read"),
    (b'{"report": {"scenario": 1}}', "could not be read"),
    (b"{}", "could not be read"),
])  # fmt: skip
def test_no_report_is_a_reason_and_never_a_number(answered, answer, error):
    row = waiting()
    answered["t"] = answer
    stacking.conclude("t")
    row.refresh_from_db()
    assert row.state == StackState.FAILED
    assert error in row.error
    assert row.report == ""


@pytest.fixture
def browser(client):
    client.force_login(samples.person("eve"))
    return client


def test_the_page_says_what_to_do_before_anything_was_measured(browser):
    page = browser.get("/stack/").content.decode()
    assert "Not measured yet" in page
    assert "runs on a GPU" in page


def test_the_page_shows_the_waterfall_with_its_ceiling_and_escapes_names(browser):
    StackMeasurement.objects.create(
        scenario="tiny", hardware="cpu", ticket="a", state="done", report=encode(a_report()).decode()
    )
    page = browser.get("/stack/").content.decode()
    assert "&lt;b&gt;one pass&lt;/b&gt;" in page
    assert "<b>one pass" not in page
    assert "1.25×" in page
    assert "1.43×" in page
    assert "hardware limit" in page


def test_a_refused_stack_and_a_flagged_gain_are_said_so(browser):
    report = a_report(refused="the stack drifts: a and b")
    report = msgspec.structs.replace(
        report, stages=[msgspec.structs.replace(report.stages[0], flag="more than possible")]
    )
    StackMeasurement.objects.create(
        scenario="tiny", hardware="cpu", ticket="a", state="done", report=encode(report).decode()
    )
    page = browser.get("/stack/").content.decode()
    assert "Not accepted as a whole" in page
    assert "⚑ more than possible" in page


def test_a_gpu_scenario_goes_to_the_queue_of_a_host_that_is_there(sent, browser):
    about = {"name": "gpu-7", "kind": "NVIDIA H200", "versions": {}}
    EvaluatorHost.objects.create(queue="gpu.h200", name="gpu-7", kind="NVIDIA H200", about=about)
    assert stacking.ask("toy_deepseek", None).hardware == "h200"
    EvaluatorHost.objects.update(last_seen=timezone.now() - timedelta(hours=1))
    with pytest.raises(ActionError, match="no GPU host"):
        stacking.ask("toy_deepseek", None)


def test_an_outsider_neither_sees_nor_asks(client):
    assert client.get("/stack/").status_code == 302
    client.post("/stack/tiny/measure")
    assert not StackMeasurement.objects.exists()


def test_the_gpu_scenario_is_refused_with_what_to_do(browser):
    page = browser.post("/stack/toy_deepseek/measure", follow=True).content.decode()
    assert "no GPU host is there now: see Hosts. Or choose tiny" in page
    assert browser.post("/stack/huge/measure").status_code == 404
