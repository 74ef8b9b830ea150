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
