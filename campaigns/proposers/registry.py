"""Every proposer, by the name under which a campaign chooses it. A new one is a file here and a line below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .base import Proposer, ProposerError


@dataclass(frozen=True)
class Entry:
    """``factory`` is ``module:class``, imported on first use, so that nobody waits for parts that they do not use."""

    title: str
    summary: str
    factory: str
    proposes: bool = True
    """False: candidates come in from outside, and the loop waits for them."""
    reads: bool = True
    """Whether ideas, notes and the reasons of rejections reach it. False: they are for people, and for who comes later."""


PROPOSERS: dict[str, Entry] = {
    "tuner": Entry(
        "Parameter tuner",
        "Turns the numbers that the kernel declares as tunable. Needs no model and no key, and reads no idea: yours stands "
        "beside its attempts, for people.",
        "campaigns.proposers.tuner:Tuner",
        reads=False,
    ),
    "replay": Entry(
        "Replay",
        "Offers the candidates of a folder, in the order of their names. Reads no idea.",
        "campaigns.proposers.replay:Replay",
        reads=False,
    ),
    "anthropic": Entry(
        "Model (Anthropic protocol)",
        "Asks a model by the Messages API. Wants ANTHROPIC_API_KEY where `manage.py up` runs, and a model by name.",
        "campaigns.proposers.anthropic_agent:AnthropicAgent",
    ),
    "openai": Entry(
        "Model (OpenAI protocol)",
        "Asks a model by Chat Completions: OpenAI, vLLM, SGLang, OpenRouter, local. Wants a model by name, and its key.",
        "campaigns.proposers.openai_agent:OpenAIAgent",
    ),
    "external": Entry(
        "Your own agent",
        "Waits for candidates that come in by REST or MCP with a token.",
        "campaigns.proposers.external:External",
        proposes=False,
    ),
}


MODELS = ("anthropic", "openai")
"""Those that ask a model."""


def names() -> list[str]:
    return list(PROPOSERS)


def proposes(name: str) -> bool:
    """Whether the loop asks it for candidates. An unknown name does: asking it then says what is wrong."""
    return name not in PROPOSERS or PROPOSERS[name].proposes


def reads(name: str) -> bool:
    """Whether what people write reaches it. An unknown name does: asking it then says what is wrong."""
    return name not in PROPOSERS or PROPOSERS[name].reads


def make(name: str, options: Mapping[str, Any] | None = None) -> Proposer:
    """The proposer of that name. Raises ``ProposerError`` for an unknown name or a wrong option."""
    if name not in PROPOSERS:
        raise ProposerError(f"There is no proposer {name!r}. There are: {', '.join(PROPOSERS)}.")
    module, _, cls = PROPOSERS[name].factory.partition(":")
    factory: type[Proposer] = getattr(import_module(module), cls)
    return factory(options or {})
