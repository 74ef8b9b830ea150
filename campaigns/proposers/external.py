"""Bring your own agent: whoever holds a token proposes, by REST or MCP. See ``docs/bring-your-own-agent.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import OnText, Proposal, ProposerError, ShouldStop, Task


class External:
    """Stands in the list of agents so that it can be chosen; the loop never asks it (``registry.proposes``)."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def propose(self, task: Task, *, on_text: OnText | None = None, should_stop: ShouldStop | None = None) -> Proposal:
        raise ProposerError("This campaign waits for candidates from outside (REST or MCP); it proposes none itself.")
