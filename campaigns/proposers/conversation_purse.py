"""What a proposal may still cost, asked before each request, so that a budget ends before it is overrun."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

from .base import Call, Exhausted, ProposerError
from .conversation_types import Meter
from .endpoints import DEFAULT_URL, Endpoint

log = logging.getLogger(__name__)
LEAST_OUTPUT = 2_000
"""An answer that may be no longer than this is not worth asking for."""
BYTES_PER_TOKEN = 2.5
"""Below what tokenizers make of code and prose (3 to 4), so that a guess of a prompt's tokens is on the high side."""
PROVIDERS = {"anthropic": "anthropic", "openai": "openai"}


def price(endpoint: Endpoint, meter: Meter) -> Decimal | None:
    """US dollars of one request, by genai-prices. None where model or server is unknown to it, or tokens are.

    genai-prices counts cached tokens inside the input tokens, as ``Meter`` does.
    """
    if meter.input_tokens is None or meter.output_tokens is None:
        return None
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=meter.input_tokens,
        cache_read_tokens=meter.cached_input_tokens or 0,
        cache_write_tokens=meter.cache_write_tokens or 0,
        output_tokens=meter.output_tokens,
    )
    at: Any = {"provider_api_url": endpoint.url}
    if endpoint.protocol == "anthropic" or endpoint.url == DEFAULT_URL["openai"]:
        # A gateway before Anthropic asks Anthropic's price; a model of somebody else's is not in its list.
        at = {"provider_id": PROVIDERS[endpoint.protocol]}
    try:
        return calc_price(usage, meter.model, **at).total_price
    except LookupError:
        return None
    except Exception as error:  # a fault of the price list costs a price, not a proposal
        log.warning("no price for %s: %s", meter.model, error)
        return None


class Purse:
    """``tokens`` and ``usd`` that are left; None: no limit."""

    def __init__(self, endpoint: Endpoint, model: str, tokens: int | None, usd: float | None) -> None:
        self.endpoint, self.model, self.tokens, self.usd = endpoint, model, tokens, usd
        self.known = 0
        """Tokens of the dialogue up to the last answer, as the server counted them."""
        if usd is not None and price(endpoint, Meter(model=model, input_tokens=1, output_tokens=1)) is None:
            raise ProposerError(
                f"The campaign has a budget in dollars, and the price of {model} at {endpoint.host} is not known. "
                "Give it a budget in tokens."
            )

    def allow(self, new_bytes: int, wanted: int) -> int:
        """How many tokens the next answer may have: ``wanted`` or fewer. Raises ``Exhausted`` when it is too few."""
        prompt = self.known + int(new_bytes / BYTES_PER_TOKEN)
        allowed = wanted
        if self.tokens is not None:
            allowed = min(allowed, self.tokens - prompt)
        if self.usd is not None:
            allowed = min(allowed, self.affordable(prompt))
        if allowed < min(wanted, LEAST_OUTPUT):
            what = f"{self.tokens:,} tokens" if self.tokens is not None else ""
            money = f"${self.usd:.4f}" if self.usd is not None else ""
            left = " and ".join(part for part in (what, money) if part)
            raise Exhausted(f"the budget for models is spent: {left} left, and the next request may cost more")
        return allowed

    def affordable(self, prompt: int) -> int:
        """Output tokens that the money left still pays, were the prompt written to the cache (the dearest way)."""
        million = 1_000_000
        asked = price(
            self.endpoint, Meter(model=self.model, input_tokens=prompt, cache_write_tokens=prompt, output_tokens=0)
        )
        each = price(self.endpoint, Meter(model=self.model, input_tokens=prompt, output_tokens=million))
        bare = price(self.endpoint, Meter(model=self.model, input_tokens=prompt, output_tokens=0))
        if asked is None or each is None or bare is None or each <= bare:
            return million
        return int((Decimal(str(self.usd)) - asked) / (each - bare) * million)

    def pay(self, call: Call) -> None:
        tokens = (call.input_tokens or 0) + (call.output_tokens or 0)
        if call.outcome == "answered":
            self.known = tokens
            if call.input_tokens is None and self.tokens is not None:
                raise ProposerError(
                    f"{self.endpoint.host} does not say how many tokens it used, so the budget in tokens cannot be "
                    "kept. Take the budget away, or another endpoint."
                )
        if self.tokens is not None:
            self.tokens -= tokens
        if self.usd is not None:
            self.usd -= float(call.price_usd or 0)
