"""The proposer ``openai``: any model behind a Chat Completions endpoint (OpenAI, vLLM, SGLang, OpenRouter, local)."""

from __future__ import annotations

from .anthropic_agent import AnthropicAgent
from .conversation_types import Model


class OpenAIAgent(AnthropicAgent):
    """As ``AnthropicAgent``, with the other protocol."""

    protocol = "openai"

    def connect(self) -> Model:
        from .openai_model import OpenAIModel

        chosen = self.options
        return OpenAIModel(chosen.endpoint, chosen.model, chosen.request, chosen.silence_s)
