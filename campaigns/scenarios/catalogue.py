"""The scenarios that there are: bundled ones beside this file, a team's own in ``$AUTORESEARCH_HOME/scenarios``.

One folder may serve several devices: a scenario is called by the workload's name. ``tiny`` is ``toy_deepseek`` for a CPU.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import Problem, Workload, load_problem, read_folder

BUNDLED = Path(__file__).resolve().parent


class Operator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator that can be swapped: whose kernels fit, and that problem's axes in terms of the scenario's."""

    problem: str
    axes: dict[str, str]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    problem: Problem
    workload: Workload
    operators: dict[str, Operator]

    @property
    def hardware(self) -> str:
        return "cpu" if self.workload.device == "cpu" else "cuda"

    def axes_of(self, operator: str) -> dict[str, int]:
        """The operator's own axes, as the model calls it."""
        return {name: self.workload.axes[ours] for name, ours in self.operators[operator].axes.items()}


def folders() -> list[Path]:
    home = os.environ.get("AUTORESEARCH_HOME")
    roots = ([Path(home) / "scenarios"] if home else []) + [BUNDLED]
    return [toml.parent for root in roots for toml in sorted(root.glob("*/scenario.toml"))]


def names() -> list[str]:
    """All scenarios' names, those for a CPU first."""
    found = {w.name: w.device for folder in folders() for w in load_problem(read_folder(folder)).workloads}
    return sorted(found, key=lambda name: (found[name] != "cpu", name))


def find(name: str) -> Scenario:
    for folder in folders():
        files = read_folder(folder)
        if any(w.name == name for w in load_problem(files).workloads):
            return load(files, name)
    raise ProblemError(f"No scenario {name!r}. There are: {', '.join(names())}.")


def load(files: dict[str, str], name: str) -> Scenario:
    """A scenario from its files. Raises ``ProblemError`` naming the file and the key."""
    problem = load_problem(files)
    workload = next((w for w in problem.workloads if w.name == name), None)
    if workload is None:
        raise ProblemError(f"problem.toml: there is no workload {name!r}")
    try:
        raw: dict[str, Any] = tomllib.loads(files.get("scenario.toml", ""))
        operators = msgspec.convert(raw.get("operators", {}), dict[str, Operator])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ProblemError(f"scenario.toml: {error}") from None
    if "model.py" not in files or not operators:
        raise ProblemError("a scenario is a problem with a model.py and a scenario.toml that names its operators")
    for operator, told in operators.items():
        if unknown := sorted(set(told.axes.values()) - set(problem.axes)):
            raise ProblemError(f"scenario.toml: operators.{operator}.axes: {unknown[0]!r} is no axis of the scenario")
    return Scenario(name=name, problem=problem, workload=workload, operators=operators)
