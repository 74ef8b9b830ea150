"""The proposer ``anthropic``: any model behind Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Desk, OnText, Proposal, ShouldStop, Task
from .conversation import Conversation
from .conversation_types import Model
from .options import ModelOptions


class AnthropicAgent:
    """Options: see ``options.ModelOptions``. ``desk`` is handed over before ``propose``."""

    protocol = "anthropic"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = ModelOptions.read(self.protocol, options)
        self.desk = Desk()

    def connect(self) -> Model:
        from .anthropic_model import AnthropicModel

        chosen = self.options
        return AnthropicModel(chosen.endpoint, chosen.model, chosen.request, chosen.silence_s)

    def conversation(self) -> Conversation:
        chosen = self.options
        return Conversation(chosen.endpoint, chosen.model, self.connect, chosen.settings, chosen.tools)

    def propose(self, task: Task, *, on_text: OnText | None = None, should_stop: ShouldStop | None = None) -> Proposal:
        return self.conversation().propose(
            task, self.desk, on_text or (lambda text: None), should_stop or (lambda: False)
        )
