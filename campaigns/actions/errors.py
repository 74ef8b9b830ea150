from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaigns.models import Campaign


class ActionError(Exception):
    """Refused. The message says why, and what can be done instead; it is shown to the person as it is."""


def refuse_imported(campaign: Campaign) -> None:
    """A campaign from an archive is a record of what others did: nothing in it is changed here."""
    if campaign.imported_from is not None:
        raise ActionError(
            "This campaign was imported from an archive and is only read. Start one of your own from its idea."
        )


def some(number: int, thing: str, one_does: str, many_do: str) -> str:
    """``some(2, "kept kernel", "waits", "wait")`` is "2 kept kernels wait"."""
    return f"{number:,} {thing} {one_does}" if number == 1 else f"{number:,} {thing}s {many_do}"
