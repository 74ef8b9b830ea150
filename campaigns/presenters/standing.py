"""How an attempt stands after the harness and the people: its mark, its colour, its word.

A kept kernel that a person rejected loses the winner's mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from campaigns.models import Attempt, Decision, Flag, FlagState, Phase, Verdict

MARKS = {
    Verdict.KEPT: "▲",
    Verdict.STACKED: "△",
    Verdict.REVERTED: "·",
    Verdict.FLAGGED: "⚑",
    Verdict.NO_MEASUREMENT: "?",
}
TONES = {
    Verdict.KEPT: "kept",
    Verdict.STACKED: "calm",
    Verdict.REVERTED: "calm",
    Verdict.FLAGGED: "flag",
    Verdict.NO_MEASUREMENT: "calm",
}
PHASES = {
    Phase.PROPOSING: "proposing…",
    Phase.READY: "waits its turn",
    Phase.EVALUATING: "evaluating…",
    Phase.DROPPED: "given up",
}


@dataclass(frozen=True)
class Standing:
    mark: str
    tone: str
    """A CSS class: kept, flag, bad or calm."""
    word: str
    kind: str
    """For the chart: the verdict, ``rejected`` for a kept kernel that a person turned down, or the phase."""

    @property
    def is_winner(self) -> bool:
        return self.kind == Verdict.KEPT


def standing_of(attempt: Attempt) -> Standing:
    if not attempt.verdict:
        word = PHASES.get(Phase(attempt.phase), attempt.phase)
        if attempt.phase == Phase.EVALUATING and attempt.evaluation_started_at is None:
            word = "in the queue"
        return Standing("–" if attempt.phase == Phase.DROPPED else "◌", "calm", word, attempt.phase)
    if attempt.verdict == Verdict.KEPT and attempt.decision == Decision.REJECTED:
        return Standing("▽", "calm", "kept, then rejected", "rejected")
    verdict = Verdict(attempt.verdict)
    word = kept_word(attempt) if verdict == Verdict.KEPT else str(verdict.label).lower()
    if verdict == Verdict.STACKED and attempt.decision:
        word = f"{word}, {attempt.decision}"
    tone = "calm" if verdict == Verdict.KEPT and is_slower(attempt) else TONES.get(verdict, "bad")
    return Standing(MARKS.get(verdict, "✕"), tone, word, attempt.verdict)


def kept_word(attempt: Attempt) -> str:
    where = ", ".join(filter(None, (range_words(r) for r in attempt.ranges or [])))
    word = f"kept for {where}" if where else "kept"
    decided = {Decision.SIGNED: ", signed once", Decision.APPROVED: ", approved"}
    word += decided.get(attempt.decision, "")  # type: ignore[call-overload]
    return f"{word}, slower than the baseline" if is_slower(attempt) else word


def is_slower(attempt: Attempt) -> bool:
    """Slower than the baseline beyond its interval: it beat its incumbent, which was slower still."""
    return attempt.speedup_hi is not None and attempt.speedup_hi < 1


def range_words(bounds: Any) -> str:
    """``{axis, lo, hi}`` as "1k ≤ tokens ≤ 96k", both ends in full where one has no short form. Nothing for anything else."""
    if not isinstance(bounds, dict) or not bounds.get("axis"):
        return ""
    lo, hi = bounds.get("lo"), bounds.get("hi")
    if lo is not None and lo == hi:
        return f"{bounds['axis']} = {count_words(lo)}"
    short = all(not isinstance(end, int) or end < 1000 or end % 1024 == 0 for end in (lo, hi))
    write = count_words if short else whole_words
    left = f"{write(lo)} ≤ " if lo is not None else ""
    right = f" ≤ {write(hi)}" if hi is not None else ""
    return f"{left}{bounds['axis']}{right}" if left or right else ""


def count_words(value: Any) -> str:
    """4096 as 4k, 6001 as 6,001: exact, and short where a power of two allows it."""
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{value // size:,}{unit}"
    return f"{value:,}"


def whole_words(value: Any) -> str:
    """65536 as 65,536."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def flag_standing(flag: Flag) -> Standing:
    tone = {"block": "bad", "warning": "flag"}.get(flag.severity, "calm")
    if flag.state == FlagState.DISMISSED:
        tone = "calm"
    return Standing("⚑", tone, f"{flag.severity}, {flag.state}", flag.state)
