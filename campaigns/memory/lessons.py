"""What an attempt taught, in a line, kept per problem and hardware; each lesson once, however often it was met.

Titles and reasons are text from outside. They are cut to a line here, and fenced where a model reads them.
"""

from __future__ import annotations

import hashlib
import re

from django.db.models import F, Q
from django.utils import timezone

from campaigns.models import Attempt, Campaign, Flag, Lesson, LessonKind, Review, Verdict
from campaigns.redaction import reason_of

from .canonical import structure_sha256

TOLD = 30
"""Lessons in one prompt: the pinned ones, then those of persons, then the newest."""
LINE = 300
BROKEN = (Verdict.INCORRECT, Verdict.BUILD_FAILED, Verdict.LAUNCH_FAILED, Verdict.TIMED_OUT, Verdict.OUT_OF_MEMORY)
WORTH = (*BROKEN, Verdict.KEPT, Verdict.STACKED, Verdict.REVERTED, Verdict.FLAGGED)


def learn(attempt: Attempt) -> Lesson | None:
    """Note what a judged attempt taught. Points of one program's parameters become one lesson together."""
    if attempt.verdict not in WORTH or not attempt.files:
        return None
    if attempt.proposer == "tuner" and attempt.parameters:
        return note_points(attempt)
    kind = LessonKind.WIN if attempt.verdict == Verdict.KEPT else LessonKind.DEAD_END
    kind = LessonKind.BROKEN if attempt.verdict in BROKEN else kind
    said = line(attempt.title) or "untitled"
    text = f"{said}: {figures(attempt)}"
    if kind == LessonKind.BROKEN or attempt.verdict == Verdict.FLAGGED:
        text = f"{text} {line(reason_of(attempt))}"
    return note(attempt, kind, text, key=(kind, plain_words(said), structure_of(attempt)))


def note_points(attempt: Attempt) -> Lesson:
    """One lesson for all points of a program: how many were tried, and the best."""
    structure = structure_of(attempt)
    campaign = attempt.campaign
    points = Attempt.objects.filter(
        structure_sha256=structure, campaign__problem=campaign.problem, campaign__hardware=campaign.hardware
    ).exclude(verdict__in=("", Verdict.NO_MEASUREMENT, Verdict.DUPLICATE))
    best = points.filter(speedup__isnull=False).exclude(verdict=Verdict.FLAGGED).order_by("-speedup").first()
    count = max(points.count(), 1)
    text = f"{count} point{'s' if count > 1 else ''} of {', '.join(sorted(attempt.parameters))} tried"
    if best is not None:
        where = ", ".join(f"{name}={value}" for name, value in sorted(best.parameters.items()))
        text += (
            f"; the best was {where} with {best.speedup:.3f}× over the baseline ({best.get_verdict_display().lower()})"
        )
    return note(attempt, LessonKind.POINTS, text[:LINE], key=(LessonKind.POINTS, structure))


def learn_decision(decision: Review | Flag) -> Lesson | None:
    """A person's rejection with its reason, or a flag that they dismissed."""
    attempt = decision.attempt
    title = line(attempt.title) or "untitled"
    if isinstance(decision, Review):
        if decision.decision != "rejected":
            return None
        text = f"{title}: a person rejected it ({decision.get_kind_display()}): {line(decision.reason)}"
        return note(
            attempt, LessonKind.REJECTED, text, key=(LessonKind.REJECTED, str(attempt.pk)), author=decision.reviewer_id
        )
    if decision.state != "dismissed":
        return None
    text = f"{title}: a person dismissed the flag {line(decision.rule)}: {line(decision.decision_reason)}"
    key = (LessonKind.DISMISSED, decision.rule, decision.decision_reason)
    return note(attempt, LessonKind.DISMISSED, text, key=key, author=decision.decided_by_id)


def note(attempt: Attempt, kind: LessonKind, text: str, key: tuple[str, ...], author: int | None = None) -> Lesson:
    """Written once under its key; met again, it is counted and says what is newest."""
    campaign = attempt.campaign
    digest = hashlib.sha256("\0".join((attempt.backend, *key)).encode()).hexdigest()
    lesson, is_new = Lesson.objects.get_or_create(
        problem=campaign.problem,
        hardware=campaign.hardware,
        key=digest,
        defaults={
            "backend": attempt.backend,
            "kind": kind,
            "text": text,
            "attempt": attempt,
            "author_id": author,
        },
    )
    if not is_new and lesson.attempt_id != attempt.pk:
        Lesson.objects.filter(pk=lesson.pk).update(
            text=text, attempt=attempt, count=F("count") + 1, updated_at=timezone.now()
        )
    return lesson


def structure_of(attempt: Attempt) -> str:
    return attempt.structure_sha256 or structure_sha256(attempt.candidate())


def lessons_for(campaign: Campaign, limit: int = TOLD) -> list[Lesson]:
    """What holds for a campaign's problem, hardware and backend, but for what its own attempts say."""
    fitting = Lesson.objects.filter(problem=campaign.problem, hardware=campaign.hardware, struck_at=None)
    fitting = fitting.filter(Q(backend="") | Q(backend=campaign.backend))
    own = Q(attempt__campaign=campaign) & ~Q(kind__in=(LessonKind.REJECTED, LessonKind.DISMISSED, LessonKind.PERSON))
    persons = [LessonKind.PERSON, LessonKind.REJECTED, LessonKind.DISMISSED]
    pinned = list(fitting.exclude(pinned_at=None).order_by("-pinned_at")[:limit])
    rest = fitting.filter(pinned_at=None).exclude(own)
    said = list(rest.filter(kind__in=persons).order_by("-updated_at")[: max(0, limit - len(pinned))])
    learnt = rest.exclude(kind__in=persons).order_by("-updated_at")
    return [*pinned, *said, *learnt[: max(0, limit - len(pinned) - len(said))]]


def told(lesson: Lesson) -> str:
    often = f" (met {lesson.count} times)" if lesson.count > 1 else ""
    return f"[{lesson.get_kind_display()}] {lesson.text}{often}"


def line(text: str) -> str:
    return " ".join(text.split())[:LINE]


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def figures(attempt: Attempt) -> str:
    gain = f", {attempt.speedup:.3f}× over the baseline" if attempt.speedup is not None else ""
    over = f", {attempt.over_incumbent:.3f}× over its incumbent" if attempt.over_incumbent is not None else ""
    return f"{attempt.get_verdict_display().lower()}{gain}{over}."
