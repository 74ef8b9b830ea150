"""Our own examples in three formats become problems that pass every check; broken ones are refused in words."""

from __future__ import annotations

import ast
import json

import pytest

from campaigns.harness.problem import load_problem
from campaigns.intake import IntakeError, convert, sniff
from campaigns.intake.kernelbench import title_of
from campaigns.intake.shapes import expression
from campaigns.intake.source import on_any_device, standing_in

from .conftest import FLASHINFER, GPU_MODE, checked, draft, example, needs_sandbox

GATED = "kernelbench/gated_mix.py"
IN_PLACE = "kernelbench/shift_in_place.py"


@needs_sandbox
@pytest.mark.parametrize(
    "paths", [(GATED,), (IN_PLACE,), GPU_MODE, FLASHINFER], ids=["gated", "in place", "gpu mode", "fib"]
)
def test_an_imported_problem_passes_every_check(paths: tuple[str, ...]):
    report = checked(draft(*paths).files, kernels=True)

    assert report.reasons == [], report
    assert report.kernels["baseline eager"].startswith("right")
    assert report.kernels["start torch"].startswith("right")


@needs_sandbox
def test_kernelbench_parameters_become_inputs_and_sizes_axes_with_hidden_ones():
    problem = load_problem(draft(GATED).files)

    assert problem.axes == ["batch", "features", "hidden"]
    assert [t.name for t in problem.inputs] == [
        "x", "keep", "gate_weight", "gate_bias", "value_weight", "norm_weight", "norm_bias",
    ]  # fmt: skip
    assert {w.device for w in problem.workloads} == {"cpu", "cuda"}
    real = next(w for w in problem.workloads if w.device == "cuda" and not w.hidden)
    assert real.axes == {"batch": 512, "features": 768, "hidden": 640}
    assert all(any(w.hidden for w in problem.workloads_on(d)) for d in ("cpu", "cuda"))


@needs_sandbox
def test_several_outputs_a_written_input_and_a_plain_argument_are_handled():
    found = draft(IN_PLACE)
    problem = load_problem(found.files)

    assert [(t.name, t.shape) for t in problem.outputs] == [("out0", [40, 48]), ("out1", [40])]
    assert "_CLONE = True" in found.files["reference.py"]
    assert "power = 3 is part of the problem" in found.notes


@needs_sandbox
def test_what_a_gpu_mode_kernel_is_given_to_write_into_is_an_output():
    problem = load_problem(draft(*GPU_MODE).files)

    assert [t.name for t in problem.inputs] == ["x", "weight"]
    assert [(t.name, t.shape) for t in problem.outputs] == [("out", ["rows", "width"])]
    assert problem.axes == ["rows", "width"]
    assert {tuple(w.axes.values()) for w in problem.workloads_on("cuda")} >= {(64, 1024), (1024, 8192)}


@needs_sandbox
def test_a_flashinfer_solution_becomes_a_start_kernel_and_a_scalar_part_of_the_problem():
    found = draft(*FLASHINFER)
    problem = load_problem(found.files)

    assert set(problem.start) == {"torch", "triton"}
    assert "alpha = 1.5 is part of the problem" in found.notes
    assert [t.name for t in problem.inputs] == ["hidden", "gate"]


def test_each_format_is_told_by_its_looks():
    assert sniff(example(GATED)) == "kernelbench"
    assert sniff(example(*GPU_MODE)) == "gpu_mode"
    assert sniff(example(*FLASHINFER)) == "flashinfer_bench"
    with pytest.raises(IntakeError, match="none of what can be read"):
        sniff({"a.py": "x = 1"})
    with pytest.raises(IntakeError, match="line 1"):
        sniff({"a.py": "def f(:"})


MODEL = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        {}
n = 64
def get_inputs():
    return [{}]
def get_init_inputs():
    return []
"""
X = "torch.randn(n, 32)"


@needs_sandbox
@pytest.mark.parametrize(
    ("body", "given", "told"),
    [
        ("return {'a': [x]}", X, "output a is a list"),
        ("return x.sum().item()", X, "gives a float"),
        ("return x", "[torch.randn(n, 3)]", "get_inputs gives a list"),
        ("return torch.fft.fft(x)", X, "complex"),
        ("return x[:0]", X, "empty"),
        ("return x.lost()", X, "lost"),
        ("import os; os._exit(0)", X, "ended its own process"),
        ("return x", "3", "no input tensor"),
        ("return open('/etc/shadow').read()", X, "/etc/shadow"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_words(body: str, given: str, told: str):
    with pytest.raises(IntakeError, match=told):
        convert({"m.py": MODEL.format(body, given)})


@needs_sandbox
def test_a_model_with_hidden_random_values_is_refused():
    text = MODEL.format("return x * self.scale", X).replace(
        "    def forward",
        "    def __init__(self):\n        super().__init__()\n        self.scale = torch.randn(32)\n    def forward",
    )

    with pytest.raises(IntakeError, match="register_buffer"):
        convert({"m.py": text})


@needs_sandbox
def test_dropout_is_refused_by_the_check():
    found = convert({"m.py": MODEL.format("return torch.nn.functional.dropout(x, 0.5) + x", X)})

    assert "not-deterministic" in [reason.rule for reason in checked(found.files).reasons]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"axes": {"tokens": {"type": "const"}}}, "const axis"),
        ({"inputs": {"x": {"shape": ["lost"], "dtype": "float32"}}}, "no axis"),
        ({"inputs": {"x": {"shape": ["tokens"], "dtype": "int32"}}}, "whole numbers"),
        ({"inputs": {"x": {"shape": ["tokens"], "dtype": "float4_e2m1"}}}, "float4_e2m1"),
        ({"outputs": {"y": {"shape": None, "dtype": "float32"}}}, "scalar"),
        ({"reference": "def walk(x): return x"}, "defines no run"),
        ({"reference": "def run(x: return x"}, "must be Python"),
    ],
)
def test_a_definition_that_is_wrong_is_refused_in_words(change: dict[str, object], told: str):
    definition = {
        "name": "d",
        "axes": {"tokens": {"type": "var"}},
        "inputs": {"x": {"shape": ["tokens"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["tokens"], "dtype": "float32"}},
        "reference": "def run(x):\n    return x * 2",
    }
    with pytest.raises(IntakeError, match=told):
        convert({"d.json": json.dumps({**definition, **change})})


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("tests: []", "no tests"),
        ("tests: [{a: 1}, {b: 2}]", "each test"),
        ("x: &a [1]\ntests: *a", "aliases"),
        ("tests: [", "task.yml"),
        ("- 1", "mapping"),
        ("tests: [{rows: [1, 2], width: 2, spread: 1.0}]", "numbers and words"),
    ],
)
def test_a_task_that_is_wrong_is_refused_in_words(task: str, told: str):
    with pytest.raises(IntakeError, match=told):
        convert({**example(*GPU_MODE), "task.yml": task})


def test_sources_follow_the_device_and_stay_as_written_otherwise():
    text = (
        'x = torch.ones(3, device="cuda")  # on the GPU\ny = f(x).cuda()\nz = "cudagraph"\nä = [x.cuda(), "cuda:0"]\n'
    )

    assert on_any_device(text) == (
        "x = torch.ones(3, device=_DEVICE)  # on the GPU\ny = f(x).to(_DEVICE)\n"
        'z = "cudagraph"\nä = [x.to(_DEVICE), _DEVICE]\n'
    )


def test_modules_that_are_not_here_leave_their_names():
    text = "from task import (\n    input_t,\n    output_t,\n)\nfrom utils import match as m\nimport torch\nx = 1\n"

    assert standing_in(text, {"task", "utils"}) == (
        "input_t = object; output_t = object\n\n\n\nm = _stand_in\nimport torch\nx = 1\n"
    )


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([7, 7, 7], 7),
        ([2, 5, 9], "a"),
        ([5, 11, 19], "2 * a + 1"),
        ([8, 35, 90], "a * b"),
        ([3, 3, 2], "b - a + 1"),
        ([1, 2, 4], "a // 2"),
        ([1, 17, 5], None),
    ],
)
def test_a_shape_is_the_plainest_formula_that_fits(values: list[int], found: str | int | None):
    cases = [{"a": 2, "b": 4}, {"a": 5, "b": 7}, {"a": 9, "b": 10}]

    assert expression(values, cases) == found


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('class Model:\n    """Group norm, then SiLU.\n\n    More.\n    """', "Group norm, then SiLU"),
        ('"""The file\'s own words."""\nclass Model:\n    """Another."""', "The file's own words"),
        ("class Model:\n    pass", ""),
    ],
)
def test_a_kernelbench_problem_is_called_what_it_says_of_itself(text: str, title: str):
    assert title_of(ast.parse(text)) == title
