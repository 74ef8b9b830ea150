"""Rows for tests, made as the product makes them: real problems, reports that decode, verdicts with their numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from campaigns import catalog
from campaigns.harness import report as reports
from campaigns.harness.problem import files_sha256, load_problem, read_folder
from campaigns.harness.report import Finding, Host, Ratio, Report, StageResult, WorkloadResult
from campaigns.models import Attempt, Campaign, Event, Flag, Idea, Measurement, Phase, Verdict

MEASURED = ("kept", "stacked", "reverted", "flagged")
SPEEDS = {"kept": 2.31, "stacked": 1.01, "reverted": 0.83, "flagged": 3.9}


def person(name: str) -> Any:
    return get_user_model().objects.get_or_create(username=name)[0]


def make_campaign(problem: str = "rmsnorm", idea: str = "Read each row once.", **fields: Any) -> Campaign:
    files = read_folder(catalog.find(problem))
    loaded = load_problem(files)
    owner = fields.pop("created_by", None) or person("owner")
    now = timezone.now()
    campaign = Campaign.objects.create(
        **{
            "title": f"{loaded.title} on cpu",
            "problem": problem,
            "problem_files": files,
            "problem_sha256": files_sha256(files),
            "backend": "cpp",
            "start_files": {"kernel.cpp": files[loaded.start["cpp"]]},
            "baseline": loaded.default_baseline(),
            "agent": "tuner",
            "state": "running",
            "started_at": now,
            "resumed_at": now,
            "created_by": owner,
            **fields,
        }
    )
    Idea.objects.create(campaign=campaign, text=idea, author=owner)
    Event.record(campaign.pk, "campaign.created")
    return campaign


def make_attempt(campaign: Campaign, verdict: str = "", **fields: Any) -> Attempt:
    """An attempt with that verdict and what belongs to it; without a verdict one that is being proposed."""
    campaign.attempt_seq += 1
    Campaign.objects.filter(pk=campaign.pk).update(attempt_seq=campaign.attempt_seq)
    number = campaign.attempt_seq
    findings = fields.pop("findings", [] if verdict != "flagged" else [block()])
    report = fields.pop("report", None) or (make_report(campaign, verdict, findings, number) if verdict else None)
    if verdict:
        fields = {**judged(campaign, verdict, report, number), **fields}
    fields.setdefault("idea", campaign.ideas.first())
    attempt = Attempt.objects.create(campaign=campaign, number=number, verdict=verdict, **fields)
    if isinstance(report, Report):
        Measurement.objects.bulk_create(measurement(attempt, row) for row in report.workloads)
    Flag.objects.bulk_create(
        Flag(attempt=attempt, rule=f.rule, severity=f.severity, evidence=f.evidence, path=f.path or "", line=f.line)
        for f in findings
    )
    if verdict == Verdict.KEPT:
        Campaign.objects.filter(pk=campaign.pk).update(incumbent=attempt)
        campaign.incumbent = attempt
    Event.record(campaign.pk, "attempt.judged" if verdict else "attempt.proposing", attempt)
    return attempt


def judged(campaign: Campaign, verdict: str, report: Any, number: int) -> dict[str, Any]:
    speedup = report.speedup if isinstance(report, Report) else None
    over, noise = (report.over_incumbent, report.noise) if isinstance(report, Report) else (None, None)
    now = timezone.now()
    return {
        "phase": Phase.JUDGED,
        "title": f"CHUNK 1024 → {1024 + number}",
        "rationale": "Two passes read the row twice.\nOne pass keeps it in registers.",
        "backend": campaign.backend,
        "files": {"kernel.cpp": changed(campaign.start_files["kernel.cpp"], number)},
        "parameters": {"CHUNK": 1024 + number},
        "proposer": "tuner",
        "parent": campaign.incumbent,
        "reason": REASONS.get(verdict, ""),
        "report": reports.encode(report).decode() if isinstance(report, Report) else (report or ""),
        "judged_at": now + timedelta(seconds=number),
        **ratio("speedup", speedup),
        **ratio("over_incumbent", over),
        "noise_lo": noise.lo if noise else None,
        "noise_hi": noise.hi if noise else None,
    }


REASONS = {
    "kept": "1.13× ± 0.006 over the incumbent: clear of the noise band.",
    "reverted": "0.98× ± 0.01 over the incumbent: not faster.",
    "stacked": "1.01× ± 0.02 over the incumbent: inside the noise band.",
    "incorrect": "hidden workload t=65,537: error 0.31, allowed 0.008",
    "build_failed": "kernel.cpp:12: error: 'vloat' was not declared in this scope",
    "flagged": "output cache: new values gave the old result",
    "no_measurement": "3 evaluators were lost while they measured it",
}


def ratio(name: str, value: Ratio | None) -> dict[str, float | None]:
    return {name: value and value.value, f"{name}_lo": value and value.lo, f"{name}_hi": value and value.hi}


def changed(source: str, number: int) -> str:
    lines = source.split("\n")
    lines[-2:-2] = [f"// attempt {number}", f"static constexpr int kTile{number} = {number};"]
    return "\n".join(lines)


def block() -> Finding:
    evidence = "New values gave the old result in 3 of 12 calls."
    return Finding(rule="output-cache", severity="block", evidence=evidence, path="kernel.cpp", line=3)


def make_report(campaign: Campaign, verdict: str, findings: list[Finding], number: int = 1, **fields: Any) -> Report:
    measured = verdict in MEASURED
    value = fields.pop("speedup", SPEEDS.get(verdict))
    speedup = Ratio(value=value, lo=value * 0.99, hi=value * 1.01) if measured and value else None
    body = {
        "outcome": "measured" if measured else verdict,
        "summary": REASONS.get(verdict, ""),
        "problem": campaign.problem,
        "problem_sha256": campaign.problem_sha256,
        "candidate_sha256": f"{number:064x}",
        "incumbent_sha256": None,
        "baseline": campaign.baseline,
        "backend": campaign.backend,
        "mode": "full",
        "harness_version": "1.4",
        "host": Host(name="bench-1", kind="cpu", processor="EPYC 9354", versions={"g++": "12.2"}, sandbox="bubblewrap"),
        "stages": stages(verdict),
        "workloads": workloads(campaign, verdict, speedup) if verdict != "build_failed" else [],
        "findings": findings,
        "speedup": speedup,
        "over_incumbent": Ratio(value=1.13, lo=1.12, hi=1.14) if measured else None,
        "noise": Ratio(value=1.0, lo=0.985, hi=1.016) if measured else None,
        "build_log": "kernel.cpp:12: error: 'vloat' was not declared" if verdict == "build_failed" else "",
        "seconds": 7.4,
        **fields,
    }
    return Report(**body)


def stages(verdict: str) -> list[StageResult]:
    order = [("scan", "nothing forbidden"), ("build", "built in 0.31 s"), ("correctness", "60 fresh draws agree")]
    order += [("timing", "31 interleaved rounds"), ("confirmation", "2.30× in fresh processes")]
    ends = {"build_failed": "build", "incorrect": "correctness"}
    found = []
    for name, detail in order:
        failed = name == ends.get(verdict)
        evidence = {"rounds": 31} if name == "timing" else {}
        status = "failed" if failed else "passed"
        found.append(StageResult(name=name, status=status, detail=detail, seconds=0.31, evidence=evidence))
        if failed:
            break
    return found


def workloads(campaign: Campaign, verdict: str, speedup: Ratio | None) -> list[WorkloadResult]:
    rows = []
    loaded = load_problem(campaign.problem_files)
    for i, w in enumerate(loaded.workloads_on("cpu")):
        wrong = verdict == "incorrect" and w.hidden
        timed = speedup is not None and w.timed
        value = speedup.value * (0.8 + 0.08 * i) if timed and speedup else None
        own = Ratio(value=value, lo=value * 0.98, hi=value * 1.02) if value else None
        rows.append(
            WorkloadResult(
                name=w.name,
                hidden=w.hidden,
                axes=w.axes,
                correct=not wrong,
                error=3e-2 if wrong else 2e-6,
                tolerance=1e-5,
                time_us=100.0 * (i + 1) if timed else None,
                baseline_us=100.0 * (i + 1) * value if value else None,
                incumbent_us=113.0 * (i + 1) if timed else None,
                floor_us=61.0 * (i + 1) if timed else None,
                speedup=own,
                over_incumbent=own and Ratio(value=1.13, lo=1.12, hi=1.14),
            )
        )
    return rows


def measurement(attempt: Attempt, row: WorkloadResult) -> Measurement:
    names = [
        "hidden",
        "axes",
        "correct",
        "error",
        "tolerance",
        "detail",
        "time_us",
        "baseline_us",
        "incumbent_us",
        "floor_us",
    ]
    plain = {name: getattr(row, name) for name in names}
    ratios = {**ratio("speedup", row.speedup), **ratio("over_incumbent", row.over_incumbent)}
    return Measurement(attempt=attempt, workload=row.name, **plain, **ratios)
