"""All questions that are asked of one workload."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accuracy import compare, rms
from ..errors import CandidateFailure
from ..memory import Place
from ..problem import Problem
from .desk import Table, Values
from .findings import Findings
from .guesses import changed_share, fixed_share, passing
from .rounding import LOWER, SIGNIFICANT_BITS, rounded, stored

MANY_DRAWS, FEW_DRAWS = 8, 3
DEAR_S = 0.1
"""A reference slower than this answers few draws."""
FIXED_ALLOWED = {MANY_DRAWS: 0.02, FEW_DRAWS: 0.30}
"""By chance as many values may agree in all draws: half of what a ReLU gives is zero, in eight draws 0.8 % of it always."""
BY_DESIGN = 0.9
"""Nobody masks more than this."""
REFRESHES = 3
CHANGED_FLOAT, CHANGED_WHOLE = 0.9, 0.5
"""The least share of values that a refresh changes. Of whole numbers many agree by chance."""
FEW_VALUES = 32
"""So few may all be near by luck: a lower precision then has to pass on every draw."""
IN_A_ROW = 24
DRIFT = 16.0


@dataclass
class Seen:
    """Names of inputs, over all workloads together: those that mattered to an output, those that differ by draw."""

    mattered: set[str] = field(default_factory=set)
    varied: set[str] = field(default_factory=set)

    def conclude(self, problem: Problem, findings: Findings) -> None:
        """A context of one token does not depend on the query, and that is right: other workloads show it."""
        for spec in problem.inputs:
            if spec.name not in self.mattered:
                findings.refuse(
                    "no-influence",
                    spec.name,
                    f"input {spec.name} makes no difference beyond the tolerance at any workload that was checked.",
                    "Leave it out of the inputs, or draw so that it matters.",
                )
            elif spec.name not in self.varied:
                findings.note(
                    f"input {spec.name} is the same in every draw: a kernel may prepare it once and keep that. "
                    "Draw it from the generator if that should not count."
                )


@dataclass(frozen=True)
class Fingerprint:
    """What one seed gave, to be compared with what a fresh process gives."""

    seed: int
    inputs: str
    outputs: str


def digest(arrays: Sequence[NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).view(np.uint8).tobytes())
    return found.hexdigest()


def fingerprint(table: Table, seed: int) -> Fingerprint:
    table.draw(seed)
    inputs = digest([table.inputs.bytes])
    return Fingerprint(seed, inputs, digest(list(table.answer().values())))


class Look:
    """One workload on its table. ``run`` asks everything and adds to the findings."""

    def __init__(self, problem: Problem, table: Table, findings: Findings, seen: Seen) -> None:
        self.problem, self.table, self.findings, self.seen = problem, table, findings, seen
        self.workload, self.name = table.workload, table.workload.name
        self.random = np.random.default_rng(secrets.randbits(128))
        self.seed = secrets.randbits(62)
        self.specs = {s.name: s for s in problem.outputs}
        self.tolerance = {s.name: problem.tolerance_for(s, self.workload) for s in problem.outputs}
        self.base = table.snapshot()
        self.answers: list[Values] = []
        self.draws: list[NDArray[np.uint8]] = []

    def refuse(self, rule: str, subject: str, what: str, do: str) -> None:
        self.findings.refuse(rule, subject, what, do, self.name)

    def run(self) -> Fingerprint:
        first = self.first_draw()
        self.more_draws()
        self.guesses()
        self.fixed()
        self.inputs_matter()
        self.precision()
        self.refreshes()
        self.edges()
        return first

    # --- what a draw gives ---------------------------------------------------------------------------------------

    def first_draw(self) -> Fingerprint:
        self.table.draw(self.seed)
        self.base = self.table.snapshot()
        answer = self.table.answer()
        if not np.array_equal(self.table.inputs.bytes, self.base):
            self.refuse(
                "changes-inputs",
                "reference.py",
                "reference.py changes its inputs in place: a kernel would be compared with the answer to other inputs.",
                "Copy before an in-place operation (x.clone()), and name the result as an output.",
            )
            self.table.restore(self.base)
        self.finite(answer, "a draw")
        again = self.table.answer()
        if digest(list(again.values())) != digest(list(answer.values())):
            self.refuse(
                "not-deterministic",
                "reference.py",
                "reference.py gave two answers to the same inputs that differ in bits.",
                "Take what is random out of reference.py (dropout, torch.rand …) and give it as an input instead.",
            )
        self.answers, self.draws = [answer], [self.base]
        return Fingerprint(self.seed, digest([self.base]), digest(list(answer.values())))

    def finite(self, answer: Values, when: str) -> None:
        inputs = [self.table.values(place) for place in self.table.places]
        if any(np.isnan(values).any() for values in inputs):
            return
        all_finite = all(np.isfinite(values).all() for values in inputs)
        for name, values in answer.items():
            bad = int((~np.isfinite(values)).sum() if all_finite else np.isnan(values).sum())
            if bad:
                self.refuse(
                    "not-finite",
                    name,
                    f"{bad} of {values.size} values of output {name} are not finite at {when}, and the inputs are.",
                    "Change reference.py or the draw: NaN as an expected value can neither be met nor missed.",
                )

    def more_draws(self) -> None:
        count = MANY_DRAWS if self.table.expect_s < DEAR_S else FEW_DRAWS
        for _ in range(count - 1):
            self.table.draw(secrets.randbits(62))
            self.draws.append(self.table.snapshot())
            self.answers.append(self.table.answer())
        if all(np.array_equal(self.base, other) for other in self.draws[1:]):
            self.refuse(
                "same-draw",
                "inputs.py",
                "make_inputs gives the same inputs whatever the generator: a kernel could remember the answer.",
                "Draw from the generator that is given: torch.randn(…, generator=generator, device=device).",
            )
            return
        for place in self.table.places:
            if any(not np.array_equal(self.span(self.base, place), self.span(d, place)) for d in self.draws[1:]):
                self.seen.varied.add(place.name)

    def is_dear(self) -> bool:
        return len(self.answers) < MANY_DRAWS

    def span(self, snapshot: NDArray[np.uint8], place: Place) -> NDArray[np.uint8]:
        return snapshot[place.offset : place.offset + place.nbytes]

    # --- what could pass without being computed ---------------------------------------------------------------------

    def guesses(self) -> None:
        for name, t in self.tolerance.items():
            for guess in passing([a[name] for a in self.answers], t):
                self.refuse(
                    "guess-passes",
                    f"{name}: {guess}",
                    f"{guess} would pass as output {name} at a tolerance of {t:g}.",
                    "Make the draw vary more (scale, peaks, signs), or the tolerance smaller.",
                )

    def fixed(self) -> None:
        allowed = FIXED_ALLOWED[len(self.answers)]
        for name, spec in self.specs.items():
            share = fixed_share([a[name] for a in self.answers])
            if share > allowed + spec.fixed:
                self.refuse(
                    "fixed-output",
                    name,
                    f"{share:.0%} of output {name} are the same in {len(self.answers)} draws: that part need not be computed.",
                    "Draw inputs that move it, or leave it out of the output." + said_by_design(share),
                )

    # --- what the inputs do -----------------------------------------------------------------------------------------

    def inputs_matter(self) -> None:
        """Each input that has not mattered yet is replaced by that of another draw, the others stay."""
        for place in self.table.places:
            if place.name in self.seen.mattered:
                continue
            self.table.restore(self.base)
            other = self.span(self.draws[1], place)
            if np.array_equal(other, self.span(self.base, place)):
                other = self.moved(place)
            self.table.bits(place)[:] = other
            try:
                answer = self.table.answer()
            except CandidateFailure:
                if self.table.desk.channel.closed:
                    raise
                self.seen.mattered.add(
                    place.name
                )  # the reference refuses inputs that do not fit together: it looks at them
                continue
            if not self.same(answer):
                self.seen.mattered.add(place.name)
        self.table.restore(self.base)

    def moved(self, place: Place) -> NDArray[np.uint8]:
        """An input that no draw changes, changed: its values in another order, or around what all of them are."""
        if place.dtype == "bool":
            return 1 - self.table.bits(place)
        if place.dtype not in LOWER:
            return np.roll(self.table.inputs.view(place).reshape(-1), 1).view(np.uint8)
        values = self.table.values(place)
        if values.size > 1 and (values != values.flat[0]).any():
            return stored(np.roll(values.reshape(-1), 1), place.dtype)
        noise = self.random.standard_normal(values.shape) * 0.1
        return stored(np.where(values == 0, noise, values * (1 + np.clip(noise * 3, -0.5, 0.5))), place.dtype)

    def same(self, answer: Values, draw: int = 0) -> bool:
        """Whether an answer would pass as that to a draw."""
        return all(compare(answer[n], self.answers[draw][n], t).passed for n, t in self.tolerance.items())

    # --- what precision the tolerance asks for ----------------------------------------------------------------------

    def precision(self) -> None:
        if not self.workload.timed:
            return
        floats = [s.name for s in self.problem.outputs if "float" in self.problem.tensor_dtype(s, self.workload)]
        if not floats:
            self.findings.note("all outputs are whole numbers: whether a lower precision would do was not asked")
            return
        few = sum(self.answers[0][name].size for name in floats) < FEW_VALUES
        for lower in LOWER.get(self.workload.dtype, ()):
            if all(self.would_pass(lower, i) for i in range(len(self.draws) if few else 1)):
                self.refuse(
                    "lower-precision-passes",
                    f"{self.workload.dtype}: {lower}",
                    f"{lower} inside would pass as {self.workload.dtype}: with the inputs rounded to {lower} all outputs are "
                    f"within the tolerance of {max(self.tolerance[n] for n in floats):g}.",
                    "Make the tolerance smaller, or draw values that need the declared type (not small whole numbers).",
                )

    def would_pass(self, lower: str, draw: int) -> bool:
        self.table.restore(self.draws[draw])
        for place in self.table.places:
            if SIGNIFICANT_BITS.get(place.dtype, 53) > SIGNIFICANT_BITS[lower] and place.dtype in LOWER:
                self.table.bits(place)[:] = stored(rounded(self.table.values(place), lower), place.dtype)
        answer = self.table.answer()
        self.table.restore(self.base)
        return self.same(answer, draw)

    # --- how the draw is changed ------------------------------------------------------------------------------------

    def refreshes(self) -> None:
        if "def refresh(" not in self.problem.files["inputs.py"]:
            return
        shares: dict[str, list[float]] = {name: [] for name in self.specs}
        for _ in range(1 if self.is_dear() else REFRESHES):
            after = self.refresh_once()
            for name, found in shares.items():
                found.append(changed_share(self.answers[0][name], after[name]))
        for name, found in shares.items():
            self.changed_enough(name, float(np.mean(found)))
        if not self.is_dear():
            self.many_refreshes()

    def refresh_once(self) -> Values:
        self.table.restore(self.base)
        seed = secrets.randbits(62)
        said = self.table.refresh(seed)
        after = self.table.snapshot()
        self.refresh_names(said, after)
        self.table.restore(self.base)
        self.table.refresh(seed)
        if not np.array_equal(self.table.inputs.bytes, after):
            self.refuse(
                "refresh-not-deterministic",
                "inputs.py",
                "refresh gives other inputs when it is called again with the same inputs and the same generator.",
                "Draw from the generator that is given, and from nothing else.",
            )
        return self.table.answer()

    def refresh_names(self, said: list[str] | None, after: NDArray[np.uint8]) -> None:
        changed = {
            p.name for p in self.table.places if not np.array_equal(self.span(self.base, p), self.span(after, p))
        }
        if said is None or not changed <= set(said):
            self.refuse(
                "refresh-names",
                "inputs.py",
                f"refresh changed {', '.join(sorted(changed)) or 'nothing'} and returned {said!r}.",
                "Return the list of the names of all inputs that it changes.",
            )

    def changed_enough(self, name: str, share: float) -> None:
        dtype = self.problem.tensor_dtype(self.specs[name], self.workload)
        least = (CHANGED_FLOAT if "float" in dtype else CHANGED_WHOLE) * (1 - self.specs[name].fixed)
        if share < least:
            self.refuse(
                "refresh-too-little",
                name,
                f"refresh changes {share:.0%} of output {name}; at least {least:.0%} are asked for: "
                "what it leaves could be kept from the call before.",
                "Change more of the inputs in refresh, or leave refresh out: then every call gets a fresh draw.",
            )

    def many_refreshes(self) -> None:
        """A long row of them stays finite and of the same magnitude."""
        for _ in range(IN_A_ROW):
            self.table.refresh(secrets.randbits(62))
        answer = self.table.answer()
        self.finite(answer, f"the {IN_A_ROW}th refresh")
        for name, values in answer.items():
            scales = [rms(a[name]) for a in self.answers]
            if not min(scales) / DRIFT <= rms(values) <= max(scales) * DRIFT:
                self.refuse(
                    "refresh-drifts",
                    name,
                    f"after {IN_A_ROW} refreshes output {name} has an RMS of {rms(values):.3g}; "
                    f"fresh draws have {min(scales):.3g} to {max(scales):.3g}.",
                    "Make refresh keep the distribution: draw parts anew instead of multiplying or adding again and again.",
                )
        self.table.restore(self.base)

    def edges(self) -> None:
        for name in self.table.edge_names(secrets.randbits(62)):
            self.table.edge(name)
            self.finite(self.table.answer(), f"the edge case {name}")


def said_by_design(share: float) -> str:
    if share > BY_DESIGN:
        return ""
    return (
        " Where it is so by design (a mask's zeros), say it: "
        f"fixed = {math.ceil(100 * share) / 100:g} beside the output's name in problem.toml."
    )
