"""How much the timing is worth: a kernel against itself, or against one of known gain, many times over. See ``cli.py``.

A few processes of each side are kept; a comparison takes some of them at random and gives each new memory in new places.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..backends import Built
from ..errors import CandidateFailure, Infrastructure
from ..gate import MIN_NOISE_GPU, clears, noise_band
from ..problem import Workload
from ..report import Finding, Ratio
from ..request import CandidateSource
from ..session import CANDIDATE, INCUMBENT, SECOND, Outcome
from .bench import GpuBench
from .runner import GpuRunner
from .session import GpuSession
from .warming import Warming, dropped


@dataclass
class Quiet:
    """Nobody listens; findings are collected."""

    findings: list[Finding] = field(default_factory=list)

    def progress(self, stage: str, detail: str) -> None:
        pass

    def checkpoint(self) -> None:
        pass

    def add_finding(self, finding: Finding) -> None:
        self.findings.append(finding)


@dataclass(frozen=True)
class Row:
    """One comparison."""

    over: Ratio
    noise: Ratio
    time_us: float
    clocks: dict[str, float]
    rounds: int
    seconds: float
    findings: list[str]
    calls: dict[str, int]
    raw: dict[str, list[tuple[float, ...]]]

    @property
    def keeps(self) -> bool:
        return clears(self.over, self.noise, floor=MIN_NOISE_GPU)


class Study:
    def __init__(self, bench: GpuBench, candidate: CandidateSource, incumbent: CandidateSource, pool: int) -> None:
        from .. import backends

        self.bench = bench
        self.same = candidate == incumbent
        built: dict[int, Built] = {}
        for index, source in enumerate((candidate, incumbent)):
            built[index] = backends.built(source)
        counts = (pool, 0) if self.same else (max(2, pool // 3), max(2, pool - pool // 3))
        self.sides = [
            [self.start(f"{side} {i}", source, built[number]) for i in range(count)]
            for number, (side, source, count) in enumerate(
                zip(("candidate", "incumbent"), (candidate, incumbent), counts, strict=True)
            )
        ]

    def start(self, who: str, source: CandidateSource, built: Built) -> GpuRunner:
        return GpuRunner.start(who, self.bench.spares, self.bench.problem, source, built, lambda: False, mine=False)

    @property
    def runners(self) -> list[GpuRunner]:
        return [runner for side in self.sides for runner in side]

    def warm(self, workloads: list[Workload]) -> None:
        Warming(self.bench, self.runners, workloads).wait()

    def choose(self, rng: random.Random) -> dict[str, GpuRunner]:
        if self.same:
            one, two, three = rng.sample(self.sides[0], 3)
        else:
            three = rng.choice(self.sides[0])
            one, two = rng.sample(self.sides[1], 2)
        return {INCUMBENT: one, SECOND: two, CANDIDATE: three}

    def compare(self, workload: Workload, rng: random.Random) -> Row:
        began = time.monotonic()
        chosen, hooks = self.choose(rng), Quiet()
        with self.bench.spares.still(), dropped(list(chosen.values()), [workload]):
            session = GpuSession(hooks, self.bench, chosen, "study")
            outcome: Outcome = session.run([workload])
        assert outcome.over_incumbent is not None
        assert outcome.noise is not None
        times = outcome.times_us[workload.name]
        return Row(
            outcome.over_incumbent,
            outcome.noise,
            times[CANDIDATE],
            session.clocks()[workload.name],
            outcome.rounds,
            time.monotonic() - began,
            [f.rule for f in hooks.findings],
            session.lanes[0].calls,
            session.lanes[0].raw,
        )

    def run(self, workload: Workload, pairs: int, say: Callable[[str], None], limit_s: float) -> list[Row]:
        rng, rows = random.Random(self.bench.seed()), []
        until = time.monotonic() + limit_s
        for number in itertools.count(1):
            try:
                rows.append(self.compare(workload, rng))
            except (CandidateFailure, Infrastructure) as error:
                say(f"{workload.name}: comparison {number}: {error}")
            if number >= pairs or time.monotonic() > until:
                return rows
        return rows

    def close(self) -> None:
        for runner in self.runners:
            runner.close()


def summary(name: str, rows: list[Row]) -> dict[str, Any]:
    """What a table shows of one workload's comparisons."""
    logs = [math.log(row.over.value) for row in rows]
    clocks = [abs(ratio - 1) for row in rows for ratio in row.clocks.values()]
    return {
        "workload": name,
        "pairs": len(rows),
        "keeps": sum(row.keeps for row in rows),
        "time_us": round(statistics.median(row.time_us for row in rows), 3),
        "mean_ratio": round(math.exp(statistics.fmean(logs)), 5),
        "sd": round(statistics.pstdev(logs), 5),
        "worst": round(max(abs(value) for value in logs), 5),
        "covered": round(
            statistics.fmean(row.over.lo <= math.exp(statistics.fmean(logs)) <= row.over.hi for row in rows), 3
        ),
        "band": round(statistics.median(noise_band(row.noise, MIN_NOISE_GPU) for row in rows), 5),
        "half_width": round(statistics.median(row.over.value - row.over.lo for row in rows), 5),
        "clocks_median": round(statistics.median(clocks), 5) if clocks else None,
        "clocks_worst": round(max(clocks), 5) if clocks else None,
        "rounds": statistics.median(row.rounds for row in rows),
        "seconds": round(statistics.median(row.seconds for row in rows), 2),
        "findings": sorted({rule for row in rows for rule in row.findings}),
    }


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    names = ("µs", "pairs", "keeps", "mean", "sd", "worst", "band", "±", "clocks", "worst", "s")
    widths = (9, 7, 7, 9, 8, 8, 8, 8, 9, 8, 6)
    yield f"{'workload':<10}" + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    for row in found:
        clocks = (
            f"{row['clocks_median']:>9.2%}{row['clocks_worst']:>8.2%}"
            if row["clocks_median"] is not None
            else f"{'–':>17}"
        )
        yield (
            f"{row['workload']:<10}{row['time_us']:>9.2f}{row['pairs']:>7}{row['keeps']:>7}{row['mean_ratio']:>9.4f}{row['sd']:>8.2%}"
            f"{row['worst']:>8.2%}{row['band']:>8.2%}{row['half_width']:>8.2%}{clocks}{row['seconds']:>6.2f}"
            + (f"  findings: {', '.join(row['findings'])}" if row["findings"] else "")
        )
