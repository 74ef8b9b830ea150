"""What was tried on a problem and kind of hardware, over all campaigns: no dead end is walked twice."""

from .canonical import canonical_sha256, structure_sha256
from .duplicates import refusal
from .lessons import learn, learn_decision, lessons_for

__all__ = ["canonical_sha256", "learn", "learn_decision", "lessons_for", "refusal", "structure_sha256"]
