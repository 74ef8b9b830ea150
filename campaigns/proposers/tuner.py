"""Turns the parameters that the incumbent's source declares as tunable, by Optuna's TPE.

Nothing is kept between calls: the study is built anew from the campaign's attempts. Source of the method: Bergstra
et al., "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011; multivariate: Falkner et al., "BOHB", ICML 2018.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from campaigns.harness.candidate import Tunable, normalised_sha256, tunables, with_values
from campaigns.harness.errors import CandidateError
from campaigns.harness.request import CandidateSource

from .base import Exhausted, OnText, PastAttempt, Proposal, ProposerError, ShouldStop, Task

STARTUP_TRIALS = 8
"""Points drawn at random before TPE has enough to go on."""
ASKS = 32
"""How often TPE may name a point that was tried before it is left for the nearest untried one."""
ENUMERABLE = 100_000
"""Grids up to this size are searched whole for an untried point."""

Point = tuple[int, ...]
"""Of each tunable, which of its choices."""


class Tuner:
    """No options. The seed is the attempt's number, so that a repeated call proposes the same."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)

    def propose(self, task: Task, *, on_text: OnText | None = None, should_stop: ShouldStop | None = None) -> Proposal:
        try:
            grid = Grid(task.incumbent)
        except CandidateError as error:
            raise ProposerError(f"The incumbent's tunable parameters cannot be read: {error}") from None
        past = {a.number: point for a in task.attempts if (point := grid.point_of(a.candidate)) is not None}
        taken = {*past.values(), grid.here}
        if (start := grid.point_of(task.start)) is not None:
            taken.add(start)
        if len(taken) >= grid.size:
            raise Exhausted(f"all {grid.size} combinations of {', '.join(grid.names)} have been tried")
        study = build_study(grid, [(past[a.number], a) for a in task.attempts if a.number in past], task.number)
        point = untried(study, grid, taken, random.Random(task.number))
        measured = sum(1 for t in study.trials if t.state == TrialState.COMPLETE)
        return grid.proposal(point, measured)


class Grid:
    """The choices that a source declares, and the point at which it stands."""

    def __init__(self, source: CandidateSource) -> None:
        self.source = source
        self.tunables: list[Tunable] = tunables(source)
        if not self.tunables:
            raise Exhausted("the incumbent declares no tunable parameters (docs/problems.md says how a source does)")
        self.names = [t.name for t in self.tunables]
        self.choices = [list(dict.fromkeys(t.choices)) for t in self.tunables]
        self.size = math.prod(len(c) for c in self.choices)
        self.here: Point = self._point(self.tunables)
        self.skeleton = self._skeleton(source)

    def point_of(self, candidate: CandidateSource) -> Point | None:
        """Where a candidate stands on this grid; None when it is another kernel."""
        try:
            declared = tunables(candidate)
            if [(t.name, list(dict.fromkeys(t.choices))) for t in declared] != list(
                zip(self.names, self.choices, strict=True)
            ):
                return None
            return self._point(declared) if self._skeleton(candidate) == self.skeleton else None
        except CandidateError:
            return None

    def values(self, point: Point) -> dict[str, str]:
        return {n: c[i] for n, c, i in zip(self.names, self.choices, point, strict=True)}

    def points(self) -> Iterable[Point]:
        return itertools.product(*(range(len(c)) for c in self.choices))

    def distributions(self) -> dict[str, BaseDistribution]:
        """Places in the list of choices: these have an order, which TPE can use and which names would hide."""
        return {n: IntDistribution(0, len(c) - 1) for n, c in zip(self.names, self.choices, strict=True)}

    def distance(self, point: Point) -> tuple[int, int]:
        """From where the incumbent stands: parameters changed, then steps."""
        steps = [abs(a - b) for a, b in zip(point, self.here, strict=True)]
        return sum(s > 0 for s in steps), sum(steps)

    def proposal(self, point: Point, measured: int) -> Proposal:
        values, old = self.values(point), self.values(self.here)
        changes = ", ".join(f"{n} {old[n]} → {values[n]}" for n in self.names if values[n] != old[n])
        how = "drawn at random" if measured < STARTUP_TRIALS else "by TPE"
        return Proposal(
            candidate=with_values(self.source, values),
            title=changes,
            rationale=f"{how[0].upper()}{how[1:]}, with {measured} measured of {self.size} combinations.",
            parameters=values,
        )

    def _point(self, declared: Iterable[Tunable]) -> Point:
        return tuple(c.index(t.value) for c, t in zip(self.choices, declared, strict=True))

    def _skeleton(self, source: CandidateSource) -> str:
        """The program whatever its parameters are: comments, white space and values changed away."""
        first = {n: c[0] for n, c in zip(self.names, self.choices, strict=True)}
        return normalised_sha256(with_values(source, first))


def build_study(grid: Grid, past: list[tuple[Point, PastAttempt]], seed: int) -> optuna.Study:
    """A study of log speed-ups over the baseline that knows all earlier attempts at this kernel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP_TRIALS, multivariate=True, constant_liar=True
        )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = grid.distributions()
    for point, attempt in past:
        study.add_trial(trial_of(dict(zip(grid.names, point, strict=True)), distributions, attempt))
    return study


def trial_of(params: dict[str, int], distributions: dict[str, BaseDistribution], attempt: PastAttempt) -> FrozenTrial:
    """An attempt on its way counts as running; a wrong or broken one as pruned: for TPE, worse than all measured.

    Only what the harness could not measure is told as failed, which TPE leaves out: it says nothing of the point.
    """
    right = attempt.verdict in ("kept", "stacked", "reverted")
    value = math.log(attempt.speedup) if right and attempt.speedup and attempt.speedup > 0 else None
    if value is not None:
        state = TrialState.COMPLETE
    elif not attempt.verdict:
        state = TrialState.RUNNING
    else:
        state = TrialState.FAIL if attempt.verdict == "no_measurement" else TrialState.PRUNED
    return optuna.trial.create_trial(state=state, params=params, distributions=distributions, value=value)


def untried(study: optuna.Study, grid: Grid, taken: set[Point], rng: random.Random) -> Point:
    """The first point that TPE names and nobody has tried, else the untried one nearest to the incumbent."""
    for _ in range(ASKS):
        trial = study.ask(grid.distributions())
        point = tuple(trial.params[name] for name in grid.names)
        if point not in taken:
            return point
        study.tell(trial, state=TrialState.FAIL)
    if grid.size <= ENUMERABLE:
        free = [p for p in grid.points() if p not in taken]
        rng.shuffle(free)
        return min(free, key=grid.distance)
    while True:  # more than 100,000 points, of which few are taken
        point = tuple(rng.randrange(len(c)) for c in grid.choices)
        if point not in taken:
            return point
