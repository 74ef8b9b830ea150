"""The options of a campaign whose agent is a model, read and checked before anything is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from . import endpoints
from .base import ProposerError
from .conversation import Settings
from .endpoints import Endpoint

KNOWN = ("model", "endpoint", "max_tokens", "tools", "request", "tune", "checks", "duplicates")
OURS = ("model", "messages", "system", "stream", "stream_options", "tools", "max_tokens", "max_completion_tokens", "n")
"""Parts of a request that ``request`` may not change: budgets and the account of tokens rest on them."""


@dataclass(frozen=True)
class ModelOptions:
    """``model``: its name at the endpoint. ``endpoint``: one that the administrator named; empty: the vendor's own.
    ``max_tokens``: of one answer. ``tools``: false for models that cannot call any. ``request``: further fields of
    each request (temperature, thinking, reasoning_effort). ``tune``: see
    ``campaigns.handover``; ``checks``: false takes the quick checks away; ``duplicates``: "measure" judges them, too."""

    model: str
    endpoint: Endpoint
    request: Mapping[str, Any]
    tools: bool
    settings: Settings
    silence_s: float

    @classmethod
    def read(cls, protocol: str, options: Mapping[str, Any]) -> ModelOptions:
        """Raises ``ProposerError`` that names the option and says what to do."""
        if unknown := sorted(set(options) - set(KNOWN)):
            raise ProposerError(f"Unknown option {unknown[0]!r}. There are: {', '.join(KNOWN)}.")
        model = str(options.get("model") or os.environ.get(f"{protocol.upper()}_MODEL", "")).strip()
        if not model or len(model) > 200 or not model.isprintable():
            raise ProposerError("Say which model: its name at the endpoint (the option `model`).")
        request = options.get("request") or {}
        if not isinstance(request, Mapping) or (taken := sorted(set(request) & set(OURS))):
            what = f"may not set {', '.join(taken)}" if isinstance(request, Mapping) else "is an object"
            raise ProposerError(f"The option `request` {what}: it adds fields such as temperature to each request.")
        max_tokens = options.get("max_tokens") or 32_000
        if not isinstance(max_tokens, int) or not 256 <= max_tokens <= 1_000_000:
            raise ProposerError("The option `max_tokens` is a whole number from 256 to 1,000,000.")
        return cls(
            model=model,
            endpoint=endpoints.find(protocol, str(options.get("endpoint") or "")),
            request=request,
            tools=bool(options.get("tools", True)),
            silence_s=float(settings.MODEL_SILENCE_S),
            settings=Settings(
                slots=settings.AUTORESEARCH_HOME / "model-slots",
                requests_at_once=settings.MODEL_REQUESTS_AT_ONCE,
                retries=settings.MODEL_RETRIES,
                backoff_s=settings.MODEL_BACKOFF_MS / 1000,
                time_limit_s=settings.MODEL_PROPOSAL_LIMIT_S,
                max_tokens=max_tokens,
            ),
        )
