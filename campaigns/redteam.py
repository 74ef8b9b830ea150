"""The red team: every cheat in the tests and its honest twins, through ``evaluate`` and ``judge``.

The tables are ``tests/**/redteam.toml``; the first of them says what their keys mean.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from campaigns import catalog, judge
from campaigns.harness import backends
from campaigns.harness.candidate import load_candidate
from campaigns.harness.errors import ProblemError
from campaigns.harness.evaluator import evaluate
from campaigns.harness.gpu import devices
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.report import Report
from campaigns.harness.request import EvaluationRequest

TESTS = Path(__file__).resolve().parent.parent / "tests"
CAUGHT = ("flagged", "incorrect")
OUT_OF_TIME = "not begun within the time given"


class Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One row of a table. ``folder`` is where the table lies."""

    file: str
    kind: str
    mode: str = ""
    needs: str = "cpu"
    problem: str = "centre"
    backend: str | None = None
    fools: bool = False
    words: str = ""
    verdicts: list[str] = []
    by: str = ""
    honest: bool = False
    folder: str = ""

    @property
    def name(self) -> str:
        return Path(self.file).stem

    @property
    def path(self) -> Path:
        return Path(self.folder) / "candidates" / self.file

    @property
    def static(self) -> str:
        """The rule by which reading the source alone shows it; nothing where it has to run."""
        return self.by.removeprefix("scan:") if self.by.startswith("scan:") else ""

    @property
    def cost(self) -> int:
        """Cheap ones first: read, checked, timed."""
        return 0 if self.static else 1 if self.asked_mode == "check" else 2

    @property
    def asked_mode(self) -> str:
        return self.mode or ("full" if self.honest else "check")

    def lacks(self) -> str:
        """What this machine lacks for it; nothing where it can run."""
        if self.needs == "gpu" and not devices.visible():
            return "needs an NVIDIA GPU"
        return (backends.BACKENDS[self.backend].missing() or "") if self.backend in backends.BACKENDS else ""


class Row(msgspec.Struct, kw_only=True):
    """What came of one entry. ``by`` names the rule, or the stage, that caught it."""

    entry: Entry
    verdict: str
    reason: str
    by: str
    blocks: list[str]
    seconds: float

    @property
    def caught(self) -> bool:
        return self.verdict in (self.entry.verdicts or CAUGHT) and self.entry.words in self.reason

    @property
    def clean(self) -> bool:
        """It was measured, and nothing blocks."""
        return not self.blocks and self.verdict in ("kept", "stacked", "reverted")

    @property
    def good(self) -> bool:
        return self.clean if self.entry.honest else self.caught


def entries(tests: Path = TESTS) -> list[Entry]:
    """All rows of all tables. Raises ``ProblemError`` where the tests are not at hand, or a row is wrong."""
    tables = sorted(tests.glob("**/redteam.toml"))
    if not tables:
        raise ProblemError(f"{tests}: no redteam.toml; the red team is part of the tests, in a checkout of the source")
    found = []
    for table in tables:
        raw = tomllib.loads(table.read_text(encoding="utf-8"))
        for honest, key in ((False, "cheats"), (True, "honest")):
            for row in raw.get(key, []):
                try:
                    found.append(msgspec.convert({**row, "honest": honest, "folder": str(table.parent)}, Entry))
                except msgspec.ValidationError as error:
                    raise ProblemError(f"{table}: [[{key}]] {row.get('file', '')}: {error}") from None
    return found


def problem_files(entry: Entry) -> dict[str, str]:
    own = Path(entry.folder) / "data" / entry.problem
    return read_folder(own if own.is_dir() else catalog.find(entry.problem))


def request_for(entry: Entry) -> EvaluationRequest:
    files = problem_files(entry)
    problem = load_problem(files)
    return EvaluationRequest(
        problem_name=problem.name,
        problem_files=files,
        candidate=load_candidate(entry.path, entry.backend),
        baseline=problem.default_baseline(),
        mode=entry.asked_mode,
    )


def run_one(entry: Entry) -> Row:
    report = evaluate(request_for(entry))
    judgement = judge.judge(report)
    return Row(
        entry=entry,
        verdict=judgement.verdict,
        reason=judgement.reason,
        by=caught_by(report),
        blocks=sorted({f.rule for f in judgement.flags if f.severity == "block"}),
        seconds=report.seconds,
    )


def caught_by(report: Report) -> str:
    blocks = [f.rule for f in report.findings if f.severity == "block"]
    failed = [s.name for s in report.stages if s.status in ("failed", "error")]
    return (blocks + failed + [""])[0]


def run(chosen: list[Entry], say: Callable[[Entry], None] | None = None, limit_s: float | None = None) -> Iterator[Row]:
    """One row after the other, cheap ones first, those of one problem together: its reference and baseline stay warm.

    None is begun once ``limit_s`` is over.
    """
    until = None if limit_s is None else time.monotonic() + limit_s
    for entry in sorted(chosen, key=lambda e: (e.cost > 0, e.folder, e.problem, e.cost)):
        if until is not None and time.monotonic() > until:
            return
        if say:
            say(entry)
        yield run_one(entry)


def document(rows: list[Row], skipped: list[Entry]) -> dict[str, Any]:
    """The document of ``--json``; its keys are kept stable."""
    cheats, honest = [r for r in rows if not r.entry.honest], [r for r in rows if r.entry.honest]
    return {
        "cheats": [
            {
                "name": r.entry.name,
                "kind": r.entry.kind,
                "needs": r.entry.needs,
                "verdict": r.verdict,
                "caught": r.caught,
                "by": r.by,
                "reason": r.reason,
            }
            for r in cheats
        ],
        "honest": [
            {
                "name": r.entry.name,
                "kind": r.entry.kind,
                "needs": r.entry.needs,
                "verdict": r.verdict,
                "clean": r.clean,
                "blocks": r.blocks,
                "reason": r.reason,
            }
            for r in honest
        ],
        "skipped": [
            {"name": e.name, "kind": e.kind, "needs": e.needs, "honest": e.honest, "reason": e.lacks() or OUT_OF_TIME}
            for e in skipped
        ],
        "caught": sum(r.caught for r in cheats),
        "clean": sum(r.clean for r in honest),
        "seconds": round(sum(r.seconds for r in rows), 1),
    }
