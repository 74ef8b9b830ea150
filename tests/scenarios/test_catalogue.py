from __future__ import annotations

import pytest

from campaigns.harness.errors import ProblemError
from campaigns.scenarios import catalogue


def test_the_bundled_ones_are_there_the_one_for_a_cpu_first():
    assert catalogue.names() == ["tiny", "toy_deepseek"]


def test_the_large_one_has_the_sizes_of_the_captured_decoder():
    scenario = catalogue.find("toy_deepseek")
    axes, workload = scenario.workload.axes, scenario.workload
    assert (axes["layers"], axes["tokens"], axes["experts"], workload.dtype) == (4, 32768, 8, "bfloat16")
    read = scenario.problem.floor_value("bytes", workload) / axes["steps"]
    assert read == pytest.approx(0.67e9, rel=0.03)


def test_an_operators_axes_are_told_in_its_own_problems_words():
    assert catalogue.find("tiny").axes_of("rmsnorm") == {"rows": 1, "hidden": 128}


@pytest.mark.parametrize(("text", "why"), [
    ("", "names its operators"),
    ("[operators.x]\nproblem = 'x'\naxes = { rows = 'nothing' }", "'nothing' is no axis"),
    ("[operators.x]\nproblem = 'x'", "axes"),
    ("[operators", "scenario.toml"),
])  # fmt: skip
def test_a_wrong_scenario_is_refused_with_the_key(text, why):
    files = {**catalogue.find("tiny").problem.files, "scenario.toml": text}
    with pytest.raises(ProblemError, match=why):
        catalogue.load(files, "tiny")


def test_an_unknown_scenario_names_those_that_there_are():
    with pytest.raises(ProblemError, match="There are: tiny, toy_deepseek"):
        catalogue.find("huge")
