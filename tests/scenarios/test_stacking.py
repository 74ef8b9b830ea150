"""Which approved kernels a scenario takes, and what becomes of a measurement's answer."""

from __future__ import annotations

import msgspec
import pytest

from campaigns import library
from campaigns.harness.hosts import this_host
from campaigns.harness.report import Ratio
from campaigns.models import StackMeasurement, StackState
from campaigns.scenarios import catalogue, stacking
from campaigns.scenarios.request import Base, Parity, StackReport, Stage, encode
from tests.archive import samples
from tests.library.conftest import approved

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


def test_an_outsider_neither_sees_nor_asks(client):
    assert client.get("/stack/").status_code == 302
    client.post("/stack/tiny/measure")
    assert not StackMeasurement.objects.exists()


def test_the_gpu_scenario_is_refused_with_what_to_do(browser):
    page = browser.post("/stack/toy_deepseek/measure", follow=True).content.decode()
    assert "Choose tiny" in page
    assert browser.post("/stack/huge/measure").status_code == 404
