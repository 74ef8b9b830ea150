from __future__ import annotations

import pytest

from campaigns.harness.errors import ProblemError
from campaigns.harness.expressions import ExpressionError, evaluate
from campaigns.harness.problem import load_problem, read_folder

from .conftest import CENTRE


def test_a_problem_gives_shapes_and_floor_of_each_workload():
    problem = load_problem(read_folder(CENTRE))
    hidden = next(w for w in problem.workloads if w.hidden)

    assert problem.shape(problem.inputs[0], hidden) == (63, 1025)
    assert problem.floor_value("bytes", hidden) == (2 * 63 * 1025 + 1025) * 4


def test_the_hash_changes_with_any_file():
    files = read_folder(CENTRE)
    other = {**files, "reference.py": files["reference.py"] + "\n"}

    assert load_problem(files).sha256 != load_problem(other).sha256


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('sweep = "rows"', 'sweep = "depth"', "sweep"),
        ('"columns"], dtype', '"colums"], dtype', "colums"),
        ("columns = 1025 }", "columns = 0 }", "at least 1"),
        (", columns = 1025 }", " }", "workloads[2]"),
        ("float32 = 1e-5", "float16 = 1e-5", "tolerance.float32"),
        ("float32 = 1e-5", "float32 = 2", "tolerance.float32"),
        ('"baselines/eager.py"', '"baselines/lost.py"', "baselines.eager.file"),
        ('"baselines/eager.py"', '"../eager.py"', "must lie in"),
        ('name = "r1_c7"', 'name = "r32_c1024"', "twice"),
        ('dtype = "float32"\naxes', 'dtype = "float31"\naxes', "float31"),
        ('title = "Centre', 'tittle = "Centre', "tittle"),
        ("hidden = true", "hidden = 1", "hidden"),
        ("[floor]", "[floor", "problem.toml"),
        ('bytes = "(2 * rows', 'bytes = "__import__(1) * (2 * rows', "not allowed"),
    ],
)
def test_a_mistake_in_the_toml_is_named(old: str, new: str, told: str):
    files = read_folder(CENTRE)
    assert old in files["problem.toml"]

    with pytest.raises(ProblemError, match=r"problem\.toml") as failure:
        load_problem({**files, "problem.toml": files["problem.toml"].replace(old, new)})

    assert told in str(failure.value)


@pytest.mark.parametrize("name", ["problem.toml", "reference.py", "inputs.py"])
def test_a_missing_file_is_named(name: str):
    files = read_folder(CENTRE)
    del files[name]

    with pytest.raises(ProblemError, match=name):
        load_problem(files)


def test_a_reference_without_its_function_is_named():
    with pytest.raises(ProblemError, match=r"reference\.py: defines no function"):
        load_problem({**read_folder(CENTRE), "reference.py": "x = 1\n"})


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProblemError, match="no such folder"):
        read_folder(tmp_path / "lost")


@pytest.mark.parametrize(
    ("text", "value"), [("tokens // 4 + 1", 26), ("-tokens + 2 * (3 - 1)", -96), ("max(1, tokens % 7)", 2)]
)
def test_expressions_are_arithmetic_over_axes(text: str, value: int):
    assert evaluate(text, {"tokens": 100}) == value


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "tokens.real", "9 ** 9", "tokens / 0", "[1]", "lambda: 1", "", "x" * 600, "(" * 300, "'a'"],
)
def test_expressions_are_nothing_else(text: str):
    with pytest.raises(ExpressionError):
        evaluate(text, {"tokens": 100})
