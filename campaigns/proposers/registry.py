"""The one place that lists the proposers by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .base import Proposer

PROPOSERS = {
    "tuner": "campaigns.proposers.tuner:Tuner",
    "replay": "campaigns.proposers.replay:Replay",
}
"""Name → ``module:class``. A class is made with the campaign's ``agent_options`` as one dict; modules are imported when
they are needed, since Optuna and the vendors' clients are slow to import."""


def names() -> list[str]:
    return list(PROPOSERS)


def make(name: str, options: dict[str, Any]) -> Proposer:
    """The proposer ``name``. Raises ``KeyError`` for a name that is not in ``PROPOSERS``."""
    module, _, attribute = PROPOSERS[name].partition(":")
    made: Callable[[dict[str, Any]], Proposer] = getattr(import_module(module), attribute)
    return made(options)
