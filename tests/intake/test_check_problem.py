"""Problems that are worth nothing, each for its own reason; and one that is worth something.

What a question finds is tried near at hand (``nearby``); what needs a process, in the sandboxes that users get.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO

import pytest
import torch
from django.core.management import CommandError, call_command

from campaigns.harness.errors import Stopped
from campaigns.harness.problem_check import check_problem

from .conftest import CENTRE, centre_with, checked, needs_sandbox, rules_of
from .nearby import NearDesk

TOML = (CENTRE / "problem.toml").read_text()
INPUTS = (CENTRE / "inputs.py").read_text()
REFERENCE = (CENTRE / "reference.py").read_text()
MAKE = "import torch\ndef make_inputs(axes, generator, device, dtype):\n    r, c = axes['rows'], axes['columns']\n"
X = "    x = torch.randn(r, c, generator=generator)\n"
W = "    w = torch.rand(c, generator=generator) + 0.5\n"
GIVE = "    return {'x': x.to(dtype), 'w': w.to(dtype)}\n"


def reference(body: str) -> str:
    return f"import torch\ndef reference(inputs, axes):\n    x, w = inputs['x'].double(), inputs['w'].double()\n{body}"


def refresh(body: str) -> str:
    return f"{INPUTS}\n\ndef refresh(inputs, axes, generator):\n{body}"


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    monkeypatch.setattr("campaigns.harness.problem_check.check.Desk", NearDesk)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


@needs_sandbox
def test_a_good_problem_is_taken_with_its_kernels_and_baseline():
    report = checked(centre_with(), kernels=True)

    assert report.reasons == []
    assert report.kernels == {
        "baseline eager": "right on 4 workloads",
        "start cpp": "right on 4 workloads",
        "start torch": "right on 4 workloads",
    }
    assert sorted(report.checked) == ["r1_c7", "r200_c300", "r32_c1024", "r63_c1025"]


NORMAL = "torch.randn(inputs['x'].shape"
IN_PLACE = """def reference(inputs, axes):
    inputs['x'].sub_(1)
    return {'y': inputs['x'].double() * inputs['w'].double()}
"""
OVERFLOWS = reference("    return {'y': ((x - x.mean(-1, keepdim=True)) * w).float().pow(3)}\n")
LITTLE = refresh("    inputs['x'][:1] += torch.randn(1, generator=generator)\n    return ['x']\n")
MISNAMED = refresh(f"    inputs['x'].copy_({NORMAL}, generator=generator))\n    return ['w']\n")
UNSEEDED = refresh(f"    inputs['x'].copy_({NORMAL}))\n    return ['x']\n")
DRIFTING = refresh("    inputs['x'].mul_(2 + torch.rand(1, generator=generator))\n    return ['x']\n")
NEAR_ONE = {
    "inputs": f"{MAKE}{X}{W}    x = x * 1e-7\n{GIVE}",
    "reference": reference("    return {'y': x + 1 + 0 * w}\n"),
}
PARTLY_FIXED = reference("    y = x * w\n    y[:, ::3] = 0.25\n    return {'y': y}\n")
BY_PROCESS = f"import os\nOWN = os.urandom(1)[0]\n{reference('    return {chr(121): x * w * (300 + OWN)}')}\n"
ALWAYS_SAME = f"{MAKE}    x = torch.arange(r * c).reshape(r, c) / 7.3\n    w = torch.ones(c)\n{GIVE}"
WHOLE = f"{MAKE}{X}{W}    x, w = x.mul(4).round(), w.mul(4).round()\n{GIVE}"
LONGER = INPUTS.replace('torch.rand(axes["columns"]', 'torch.rand(axes["columns"] + 1')


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("guess-passes", NEAR_ONE),
        ("guess-passes", {"reference": reference("    return {'y': torch.zeros_like(x)}\n")}),
        ("not-finite", {"reference": reference("    return {'y': torch.log(x) * w}\n")}),
        ("not-finite", {"inputs": INPUTS.replace("* 1e10", "* 1e30"), "reference": OVERFLOWS}),
        ("not-deterministic", {"reference": reference("    return {'y': x * w + torch.rand(1)}\n")}),
        ("not-deterministic", {"inputs": f"{MAKE}    x = torch.randn(r, c)\n{W}{GIVE}"}),
        ("same-draw", {"inputs": ALWAYS_SAME}),
        ("no-influence", {"reference": reference("    return {'y': x - x.mean(-1, keepdim=True)}\n")}),
        ("no-influence", {"reference": reference("    return {'y': x - x.mean(-1, keepdim=True) + 1e-9 * w}\n")}),
        ("fixed-output", {"reference": PARTLY_FIXED}),
        ("lower-precision-passes", {"toml": TOML.replace("float32 = 1e-5", "float32 = 2e-2")}),
        ("lower-precision-passes", {"inputs": WHOLE}),
        ("shapes", {"inputs": LONGER}),
        ("shapes", {"reference": reference("    return {'y': (x * w).sum(-1)}\n")}),
        ("shapes", {"reference": reference("    return {'z': x * w}\n")}),
        ("changes-inputs", {"reference": IN_PLACE}),
        ("reference-fails", {"reference": reference("    raise KeyError('lost')\n")}),
        ("refresh-too-little", {"inputs": LITTLE}),
        ("refresh-too-little", {"inputs": refresh("    return []\n")}),
        ("refresh-names", {"inputs": MISNAMED}),
        ("refresh-not-deterministic", {"inputs": UNSEEDED}),
        ("refresh-drifts", {"inputs": DRIFTING}),
        ("format", {"toml": TOML.replace("sweep", "swep")}),
    ],
)
def test_a_worthless_problem_is_refused_for_what_it_is(near: None, rule: str, files: dict[str, str]):
    report = checked(centre_with(**files))

    assert rule in [reason.rule for reason in report.reasons], report
    assert all(reason.what and reason.do for reason in report.reasons)


@needs_sandbox
@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("guess-passes", {"reference": reference("    return {'y': 1e-9 * x * w + x.mean(-1, keepdim=True)}\n")}),
        ("not-deterministic", {"reference": BY_PROCESS}),
        ("reference-fails", {"reference": "import os\ndef reference(inputs, axes):\n    os._exit(3)\n"}),
    ],
)
def test_so_it_is_in_its_sandbox(rule: str, files: dict[str, str]):
    report = checked(centre_with(**files))

    assert rule in [reason.rule for reason in report.reasons], report
    assert all(reason.what and reason.do for reason in report.reasons)


def test_an_input_that_matters_at_one_workload_only_is_well(near: None):
    text = reference(
        "    y = x - x.mean(-1, keepdim=True)\n    return {'y': y * w if axes['rows'] > 1 else y + 0.0 * w}\n"
    )

    assert "no-influence" not in rules_of(centre_with(reference=text))


def test_a_part_that_is_fixed_by_design_can_be_said(near: None):
    body = reference("    y = x * w\n    y[:, ::2] = 0.25\n    return {'y': y}\n")
    said = TOML.replace('dtype = "dtype" }]', 'dtype = "dtype", fixed = 0.6 }]')

    assert "fixed-output" in rules_of(centre_with(reference=body))
    assert "fixed-output" not in rules_of(centre_with(reference=body, toml=said))


def test_the_lower_precision_is_named(near: None):
    report = checked(centre_with(toml=TOML.replace("float32 = 1e-5", "float32 = 2e-3")))

    assert {r.what.split()[0] for r in report.reasons} == {"tfloat32", "float16"}


@needs_sandbox
def test_a_start_kernel_and_a_baseline_that_are_wrong_are_named():
    wrong = (CENTRE / "start" / "kernel.cpp").read_text().replace("/ columns", "/ (columns + 1)")
    files = {**centre_with(start=wrong)}

    assert rules_of(files, kernels=True) == ["start-kernel-wrong"]
    files = {**centre_with(), "baselines/eager.py": "def run(x, w, y):\n    y.copy_(x * w)\n"}
    assert "baseline-wrong" in rules_of(files, kernels=True)


@needs_sandbox
def test_a_reference_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr("campaigns.harness.problem_check.check.ASK_LIMIT_S", 2.0)
    report = checked(centre_with(reference="def reference(inputs, axes):\n    while True: pass\n"))

    assert {reason.rule for reason in report.reasons} == {"too-slow"}


@needs_sandbox
def test_a_check_can_be_stopped():
    with pytest.raises(Stopped):
        check_problem(centre_with(), should_stop=lambda: True)


def test_a_workload_without_bounds_is_refused_before_it_is_drawn():
    text = TOML.replace("rows = 200, columns = 300", "rows = 2000000, columns = 300000")
    report = checked(centre_with(toml=text))

    assert [reason.rule for reason in report.reasons] == ["too-large"]


@needs_sandbox
def test_the_command_prints_reasons_and_ends_with_two(tmp_path):
    for path, text in centre_with(reference=reference("    return {'y': torch.zeros_like(x)}\n")).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("check_problem", str(tmp_path), "--json", stdout=out, stderr=StringIO())

    document = json.loads(out.getvalue())
    assert end.value.code == 2
    assert not document["passed"]
    assert {"rule", "what", "do", "workloads"} <= set(document["reasons"][0])


def test_the_command_names_an_unknown_folder():
    with pytest.raises(CommandError, match="No problem") as error:
        call_command("check_problem", "nowhere", stdout=StringIO(), stderr=StringIO())
    assert error.value.returncode == 2
