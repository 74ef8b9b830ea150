from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import catalog, judge
from campaigns.harness.candidate import load_candidate
from campaigns.harness.errors import CandidateError, ProblemError
from campaigns.harness.evaluator import evaluate
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.report import Ratio, Report, WorkloadResult
from campaigns.harness.request import EvaluationRequest


class Command(BaseCommand):
    help = (
        "Put one candidate through the harness, against the problem's baseline and its start kernel. The exit code is 0 for "
        "every verdict, 1 when nothing could be measured, 2 for wrong arguments."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("problem", help="a problem's name, or the path of its folder")
        parser.add_argument("candidate", metavar="FILE_OR_DIR")
        parser.add_argument("--backend", help="cpp, torch, … (told from the files when left out)")
        parser.add_argument("--baseline", help="the problem's first one when left out")
        parser.add_argument("--workloads", choices=("visible", "all"), default="all")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            request = self.request(options)
        except (ProblemError, CandidateError) as error:
            if options["json"]:
                self.stdout.write(json.dumps({"error": str(error)}))
            raise CommandError(str(error), returncode=2) from error
        report = evaluate(request, progress=self.say)
        judgement = judge.judge(report)
        result = document(report, judgement)
        self.stdout.write(json.dumps(result) if options["json"] else table(result, report))
        if judgement.verdict == "no_measurement":
            sys.exit(1)

    def request(self, options: dict[str, Any]) -> EvaluationRequest:
        files = read_folder(catalog.find(options["problem"]))
        problem = load_problem(files)
        baseline = options["baseline"] or problem.default_baseline()
        if baseline not in problem.baselines:
            raise ProblemError(f"no baseline {baseline!r}; there are: {', '.join(problem.baselines)}")
        return EvaluationRequest(
            problem_name=problem.name,
            problem_files=files,
            candidate=load_candidate(options["candidate"], options["backend"]),
            baseline=baseline,
            mode="full" if options["workloads"] == "all" else "visible",
        )

    def say(self, stage: str, detail: str) -> None:
        self.stderr.write(f"{stage}: {detail}" if detail else stage)


def document(report: Report, judgement: judge.Judgement) -> dict[str, Any]:
    """The document of ``--json``; its keys are kept stable."""
    return {
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "speedup": judgement.speedup.value if judgement.speedup else None,
        "band": judgement.band,
        "over_incumbent": as_dict(judgement.over_incumbent),
        "flags": [
            {"rule": f.rule, "severity": f.severity, "evidence": f.evidence, "path": f.path, "line": f.line}
            for f in judgement.flags
        ],
        "checks": [{"name": s.name, "passed": passed(s.status), "detail": s.detail} for s in report.stages],
        "workloads": [workload(row) for row in report.workloads],
        "seconds": report.seconds,
    }


def passed(status: str) -> bool | None:
    """None for a check that was not made."""
    return {"passed": True, "failed": False}.get(status)


def workload(row: WorkloadResult) -> dict[str, Any]:
    return {
        "name": row.name,
        "hidden": row.hidden,
        "correct": row.correct,
        "time_us": row.time_us,
        "baseline_us": row.baseline_us,
        "incumbent_us": row.incumbent_us,
        "speedup": row.speedup.value if row.speedup else None,
        "band": [row.speedup.lo, row.speedup.hi] if row.speedup else None,
        "error": row.error,
        "tolerance": row.tolerance,
    }


def as_dict(ratio: Ratio | None) -> dict[str, float] | None:
    return {"value": ratio.value, "lo": ratio.lo, "hi": ratio.hi} if ratio else None


def table(result: dict[str, Any], report: Report) -> str:
    """What a person reads at a terminal."""
    lines = [f"{result['verdict']}: {result['reason']}"]
    lines += [f"  {check['name']:<13} {mark(check['passed'])} {check['detail']}" for check in result["checks"]]
    lines += [f"  ⚑ {flag['severity']}: {flag['rule']}: {flag['evidence']}" for flag in result["flags"]]
    lines.append(f"  {'workload':<24} {'time':>12} {'baseline':>12} {'speed-up':>16} {'error ÷ allowed':>16}")
    for row in result["workloads"]:
        name = row["name"] + (" (hidden)" if row["hidden"] else "")
        gain = f"{row['speedup']:.3f}×" if row["speedup"] is not None else "not measured"
        error = f"{row['error'] / row['tolerance']:.3f}" if row["error"] is not None and row["tolerance"] else "–"
        lines.append(f"  {name:<24} {us(row['time_us']):>12} {us(row['baseline_us']):>12} {gain:>16} {error:>16}")
    if report.build_log and result["verdict"] == "build_failed":
        lines.append(report.build_log)
    return "\n".join(lines)


def mark(passed: bool | None) -> str:
    return "–" if passed is None else ("✓" if passed else "✕")


def us(value: float | None) -> str:
    return f"{value:,.1f} µs" if value is not None else "not measured"
