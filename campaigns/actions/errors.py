from __future__ import annotations


class ActionError(Exception):
    """Refused. The message says why, and what can be done instead; it is shown to the person as it is."""
