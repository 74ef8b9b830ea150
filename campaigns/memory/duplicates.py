"""Is a candidate worth an evaluator's time, or do we know already how it ends?"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from campaigns.harness.request import CandidateSource
from campaigns.models import Attempt, Campaign, Decision, Phase, Verdict

from .canonical import canonical_sha256

UNFINISHED = (Verdict.NO_MEASUREMENT, Verdict.DUPLICATE)
WRONG = (Verdict.INCORRECT, Verdict.BUILD_FAILED)
"""Verdicts that rest on the program alone. Crashes, time and memory can be a host's; a flag can be dismissed."""
MEASURED = (Verdict.KEPT, Verdict.STACKED, Verdict.REVERTED)


def refusal(campaign: Campaign, candidate: CandidateSource, besides: int | None = None) -> str:
    """Why the candidate need not be measured, or an empty string. ``besides``: the attempt that it is itself.

    In the same campaign every program is judged once. An earlier campaign on the same problem and hardware speaks only
    where its word still holds: the program was wrong, or slower than what is the incumbent here, measured on the same
    host against the same baseline. What was kept elsewhere may win here, and is measured.
    """
    if campaign.agent_options.get("duplicates") == "measure":
        return ""
    canonical = canonical_sha256(candidate)
    if campaign.incumbent is None and canonical == canonical_sha256(campaign.start_candidate()):
        return "it is the start kernel, which is the incumbent: the same program, but for names, comments and layout."
    same = Attempt.objects.filter(canonical_sha256=canonical).exclude(verdict__in=UNFINISHED)
    same = same if besides is None else same.exclude(pk=besides)
    here = same.filter(campaign=campaign).exclude(phase=Phase.DROPPED).order_by("number")
    for earlier in here.select_related("parent"):
        if not measured_against_what_was_rejected(earlier):
            return f"it is the same program as attempt {earlier.number}, but for names, comments and layout: {told(earlier)}"
    for earlier in elsewhere(campaign, same):
        if earlier.verdict in WRONG or is_slower(earlier, campaign.incumbent, campaign):
            where = f"attempt {earlier.number} of campaign {earlier.campaign_id}"
            return f"{where} on the same problem and hardware was the same program: {told(earlier)}"
    return ""


def elsewhere(campaign: Campaign, same: QuerySet[Attempt]) -> QuerySet[Attempt]:
    problem = Q(campaign__problem_sha256=campaign.problem_sha256, campaign__hardware=campaign.hardware)
    judged = same.filter(problem, phase=Phase.JUDGED, verdict__in=(*WRONG, *MEASURED)).exclude(campaign=campaign)
    return judged.select_related("campaign", "parent").defer("report", "files").order_by("-id")[:20]


def measured_against_what_was_rejected(earlier: Attempt) -> bool:
    """Its incumbent fell later, so that against the present one it may win."""
    lost = earlier.verdict in (Verdict.REVERTED, Verdict.STACKED)
    return lost and earlier.parent is not None and earlier.parent.decision == Decision.REJECTED


def is_slower(earlier: Attempt, incumbent: Attempt | None, campaign: Campaign) -> bool:
    """Whether its interval lies wholly below that of the incumbent here."""
    if earlier.campaign.baseline != campaign.baseline:
        return False
    if incumbent is None:  # the start kernel: only who was measured against it can tell
        against_start = earlier.parent is None and earlier.campaign.start_files == campaign.start_files
        return against_start and earlier.verdict == Verdict.REVERTED and below(earlier.over_incumbent_hi, 1.0)
    return bool(earlier.host) and earlier.host == incumbent.host and below(earlier.speedup_hi, incumbent.speedup_lo)


def below(high: float | None, low: float | None) -> bool:
    return high is not None and low is not None and high < low


def told(earlier: Attempt) -> str:
    """How it ended, in a sentence. Without the reason of a failure: that can hold what hidden workloads gave away."""
    if not earlier.verdict:
        return "it is under way."
    gain = f", {earlier.speedup:.3f}× over the baseline" if earlier.speedup is not None else ""
    over = f", {earlier.over_incumbent:.3f}× over its incumbent" if earlier.over_incumbent is not None else ""
    rejected = " A person rejected it." if earlier.decision == Decision.REJECTED else ""
    return f"{earlier.get_verdict_display().lower()}{gain}{over}.{rejected}"
