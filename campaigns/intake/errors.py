from __future__ import annotations


class IntakeError(ValueError):
    """What was given cannot become a problem. The message says what is wrong, where, and what to do."""
