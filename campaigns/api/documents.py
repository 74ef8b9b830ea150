"""The answers as plain data. Words that are not the product's own are ``Outside``; hidden workloads are not in them."""

from __future__ import annotations

from typing import Any

from campaigns import redaction
from campaigns.briefing import signature
from campaigns.harness.candidate import ENTRY, tunables
from campaigns.harness.errors import CandidateError
from campaigns.harness.problem import Problem, TensorSpec, Workload
from campaigns.harness.report import Ratio, Report, WorkloadResult
from campaigns.harness.request import CandidateSource
from campaigns.models import Attempt, Campaign
from campaigns.presenters.text import one_line
from profiling.models import Profile, Region

from .outside import Outside, Source, outside

LOG_CHARS = 20_000


def of_campaign(campaign: Campaign) -> dict[str, Any]:
    best = campaign.best()
    return {
        "id": campaign.pk,
        "title": Outside(campaign.title),
        "problem": campaign.problem,
        "backend": campaign.backend,
        "hardware": campaign.hardware,
        "baseline": campaign.baseline,
        "agent": campaign.agent,
        "state": campaign.state,
        "state_reason": Outside(campaign.state_reason),
        "gate": campaign.gate,
        "budget_attempts": campaign.budget_attempts,
        "budget_seconds": campaign.budget_seconds,
        "target_speedup": campaign.target_speedup,
        "attempts_judged": campaign.judged_count(),
        "kept": campaign.tally().get("kept", 0),
        "waiting_for_review": campaign.waiting_for_review(),
        "best": {"attempt": best.number, "speedup": best.speedup, "band": best.band} if best else None,
        "url": campaign.get_absolute_url(),
    }


def of_attempt(attempt: Attempt) -> dict[str, Any]:
    """Facts and words of one attempt, without its files."""
    rejected = (
        attempt.reviews.filter(decision="rejected").order_by("-seq").first() if attempt.decision == "rejected" else None
    )
    report = attempt.parsed_report()
    cleaner = redaction.Redactor(report) if report else None
    clean = cleaner.scrub if cleaner else str
    return {
        "campaign": attempt.campaign_id,
        "number": attempt.number,
        "phase": attempt.phase,
        "done": attempt.phase in ("judged", "dropped"),
        "verdict": attempt.verdict,
        "reason": Outside(cleaner.reason(attempt.reason) if cleaner else attempt.reason),
        "speedup": attempt.speedup,
        "speedup_band": attempt.band,
        "over_incumbent": attempt.over_incumbent,
        "over_incumbent_band": pair(attempt.over_incumbent_lo, attempt.over_incumbent_hi),
        "noise_band": pair(attempt.noise_lo, attempt.noise_hi),
        "is_incumbent": attempt.pk == attempt.campaign.incumbent_id,
        "decision": attempt.decision,
        "rejection": Outside(clean(rejected.reason)) if rejected else "",
        "title": Outside(attempt.title),
        "rationale": Outside(attempt.rationale),
        "parameters": outside(attempt.parameters),
        "proposer": Outside(attempt.proposer),
        "flags": [of_flag(flag, cleaner) for flag in attempt.flags.all()],
        "url": attempt.get_absolute_url(),
    }


def of_flag(flag: Any, cleaner: redaction.Redactor | None) -> dict[str, Any]:
    evidence = cleaner.evidence(flag.evidence) if cleaner else flag.evidence
    return {
        "rule": flag.rule,
        "severity": flag.severity,
        "state": flag.state,
        "evidence": Outside(evidence),
        "path": Outside(flag.path),
        "line": flag.line,
    }


def of_past(attempt: Attempt) -> dict[str, Any]:
    """One line of a task's history."""
    rejection = next((r.reason for r in attempt.reviews.all() if r.decision == "rejected"), "")
    reason = redaction.reason_of(attempt) if attempt.report else attempt.reason
    return {
        "number": attempt.number,
        "verdict": attempt.verdict,
        "phase": attempt.phase,
        "speedup": attempt.speedup,
        "over_incumbent": attempt.over_incumbent,
        "title": Outside(one_line(attempt.title)),
        "reason": Outside(one_line(reason, 400)),
        "rejection": Outside(one_line(rejection, 400)),
        "parameters": outside(attempt.parameters),
        "is_incumbent": attempt.pk == attempt.campaign.incumbent_id,
    }


def of_candidate(source: CandidateSource, attempt: int | None) -> dict[str, Any]:
    """Files, and what they declare as tunable. ``attempt`` None: the campaign's start kernel."""
    try:
        declared = [
            {"name": Outside(t.name), "value": Outside(t.value), "choices": outside(t.choices)}
            for t in tunables(source)
        ]
    except CandidateError:
        declared = []
    return {
        "attempt": attempt,
        "backend": source.backend,
        "files": {Outside(path): Source(text) for path, text in source.files.items()},
        "tunables": declared,
    }


def of_interface(problem: Problem, campaign: Campaign, words: str) -> dict[str, Any]:
    """What ``run`` is given and must write, and the visible workloads; ``words`` is the same as Markdown."""
    device = "cpu" if campaign.hardware == "cpu" else "cuda"
    return {
        "entry": {"file": ENTRY.get(campaign.backend, ""), "signature": signature(problem, campaign.backend)},
        "words": Outside(words),
        "inputs": [of_tensor(spec) for spec in problem.inputs],
        "outputs": [of_tensor(spec) for spec in problem.outputs],
        "axes": problem.axes,
        "tolerance": problem.tolerance,
        "visible_workloads": [of_workload(w) for w in problem.workloads_on(device) if not w.hidden],
        "hidden_workloads": "There are others, longer and odder, and they count as much.",
    }


def of_tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "shape": [str(entry) for entry in spec.shape], "dtype": spec.dtype}


def of_workload(workload: Workload) -> dict[str, Any]:
    return {"name": workload.name, "axes": workload.axes, "dtype": workload.dtype, "timed": workload.timed}


def of_report(attempt: Attempt, report: Report) -> dict[str, Any]:
    """The evidence, as far as it may be known: hidden workloads as one aggregate."""
    cleaner = redaction.Redactor(report)
    output = cleaner.output()
    return {
        "campaign": attempt.campaign_id,
        "attempt": attempt.number,
        "verdict": attempt.verdict,
        "outcome": report.outcome,
        "summary": Outside(cleaner.reason(report.summary)),
        "speedup": ratio(report.speedup),
        "over_incumbent": ratio(report.over_incumbent),
        "noise": ratio(report.noise),
        "ranges": redaction.visible_ranges(attempt.ranges or [], report.workloads),
        "stages": [
            {"name": s.name, "status": s.status, "detail": Outside(cleaner.stage(s)), "seconds": round(s.seconds, 3)}
            for s in report.stages
        ],
        "visible_workloads": [of_row(row, cleaner) for row in report.workloads if not row.hidden],
        "hidden_workloads": redaction.aggregate(report.workloads),
        "findings": [
            {
                "rule": f.rule,
                "severity": f.severity,
                "evidence": Outside(cleaner.evidence(f.evidence)),
                "path": Outside(f.path or ""),
                "line": f.line,
            }
            for f in report.findings
        ],
        "build_log": Outside(shortened(cleaner.scrub(report.build_log))),
        "output": Outside(shortened(cleaner.scrub(output or ""))),
        "output_withheld": output is None,
        "host": {"kind": report.host.kind, "sandbox": report.host.sandbox},
        "harness_version": report.harness_version,
        "seconds": report.seconds,
    }


def of_row(row: WorkloadResult, cleaner: redaction.Redactor) -> dict[str, Any]:
    told = not cleaner.touched or cleaner.report.outcome not in redaction.SHAPED_BY_CANDIDATES
    return {
        "name": row.name,
        "axes": row.axes,
        "correct": row.correct,
        "error": row.error,
        "tolerance": row.tolerance,
        "detail": Outside(cleaner.scrub(row.detail) if told else ""),
        "time_us": row.time_us,
        "baseline_us": row.baseline_us,
        "incumbent_us": row.incumbent_us,
        "floor_us": row.floor_us,
        "speedup": ratio(row.speedup),
        "over_incumbent": ratio(row.over_incumbent),
        "labels": row.labels,
    }


def of_profile(profile: Profile) -> dict[str, Any]:
    return {
        "id": str(profile.pk),
        "name": Outside(one_line(profile.name)),
        "state": profile.state,
        "label": profile.label,
        "label_title": Outside(profile.label_title),
        "gpus": outside(profile.gpus),
        "findings": len(profile.findings),
        "url": profile.get_absolute_url(),
    }


def of_region(region: Region) -> dict[str, Any]:
    return {
        "id": region.pk,
        "start_ns": region.start_ns,
        "end_ns": region.end_ns,
        "note": Outside(region.note),
        "summary": Outside(region.as_context()),
    }


def pair(lo: float | None, hi: float | None) -> list[float] | None:
    return None if lo is None or hi is None else [lo, hi]


def ratio(value: Ratio | None) -> dict[str, float] | None:
    return {"value": value.value, "lo": value.lo, "hi": value.hi} if value else None


def shortened(text: str) -> str:
    """Begin and end of a long log; a compiler's first error and last words are both there."""
    if len(text) <= LOG_CHARS:
        return text
    half = LOG_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
