from __future__ import annotations


class ArchiveError(Exception):
    """Refused: the message says which part is wrong, and why. Nothing was written."""


class KnownError(ArchiveError):
    """Nothing is wrong: this very archive was imported before, as the campaign with the key ``campaign``."""

    def __init__(self, message: str, campaign: int) -> None:
        super().__init__(message)
        self.campaign = campaign
