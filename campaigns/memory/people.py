"""What a person does to lessons: add one, pin it, strike it."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from campaigns.actions.errors import ActionError
from campaigns.models import Lesson, LessonKind

LONGEST = 2_000


def add(problem: str, hardware: str, backend: str, text: str, person: User | None) -> Lesson:
    """A person's own lesson, told before those that were learnt. Raises ``ActionError``."""
    text = " ".join(text.replace("\x00", "").split())
    if not text or len(text) > LONGEST:
        raise ActionError(f"A lesson is a sentence or a few: 1 to {LONGEST:,} characters.")
    if not problem.strip() or not hardware.strip():
        raise ActionError("Say for which problem and which hardware the lesson holds.")
    key = hashlib.sha256(f"person\0{backend}\0{text.lower()}".encode()).hexdigest()
    lesson, is_new = Lesson.objects.get_or_create(
        problem=problem.strip()[:100],
        hardware=hardware.strip()[:50],
        key=key,
        defaults={"backend": backend.strip()[:20], "kind": LessonKind.PERSON, "text": text, "author": person},
    )
    if not is_new:
        raise ActionError("This lesson is there already.")
    return lesson


def decide(lesson: Lesson, verb: str, person: User | None) -> None:
    """``pin``, ``unpin``, ``strike`` or ``restore``."""
    now = timezone.now()
    fields: dict[str, dict[str, Any]] = {
        "pin": {"pinned_at": now, "struck_at": None},
        "unpin": {"pinned_at": None},
        "strike": {"struck_at": now, "pinned_at": None},
        "restore": {"struck_at": None},
    }
    if verb not in fields:
        raise ActionError("A lesson is pinned, unpinned, struck or restored.")
    Lesson.objects.filter(pk=lesson.pk).update(**fields[verb], decided_by=person)
