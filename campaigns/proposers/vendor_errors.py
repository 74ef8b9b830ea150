"""What goes wrong between us and a model's server, in our words: what it was, what to do, and whether to ask again."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Mapping

from .conversation_types import RequestFailed
from .endpoints import Endpoint

TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
LONGEST_PAUSE_S = 300.0
NO_MONEY = ("insufficient_quota", "credit balance", "billing", "exceeded your current quota")


def failed_status(endpoint: Endpoint, model: str, status: int, said: object, wait_s: float | None) -> RequestFailed:
    """An answer with an error status. What the server said is repeated, but for keys; of a wrong key, nothing is."""
    text = endpoint.redacted(said)
    low = text.lower()
    if status in (401, 403):
        return RequestFailed(
            f"{endpoint.host} did not accept the key ({status}). Look at the key of endpoint {endpoint.name!r}, and "
            f"whether it may use {model}.",
            transient=False,
        )
    if status == 402 or (status in (400, 429) and any(word in low for word in NO_MONEY)):
        return RequestFailed(f"{endpoint.host}: the account has no credit left ({status}): {text}", transient=False)
    if status == 404 or (status == 400 and "model" in low and ("not found" in low or "not exist" in low)):
        return RequestFailed(f"{endpoint.host} knows no model {model!r} ({status}): {text}", transient=False)
    if status == 529 or "overloaded" in low:
        return RequestFailed(f"{endpoint.host} is overloaded ({status})", transient=True, wait_s=wait_s)
    if status in TRANSIENT or status >= 500:
        return RequestFailed(f"{endpoint.host} answered {status}: {text}", transient=True, wait_s=wait_s)
    no_tools = status in (400, 404, 422, 501) and "tool" in low
    return RequestFailed(f"{endpoint.host} refused the request ({status}): {text}", transient=False, no_tools=no_tools)


def other_failure(endpoint: Endpoint, error: Exception) -> RequestFailed:
    """No answer, half an answer, or one that is no answer: worth another try, none of it is the question's fault."""
    if isinstance(error, asyncio.TimeoutError) or "timeout" in type(error).__name__.lower():
        return RequestFailed(f"{endpoint.host} fell silent", transient=True)
    what = endpoint.redacted(f"{type(error).__name__}: {error}")
    return RequestFailed(f"the connection to {endpoint.host} failed ({what})", transient=True)


def pause_before_retry(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks us to wait (``retry-after-ms``, ``retry-after``), if it does."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return min(max(float(milliseconds) / 1000, 0.0), LONGEST_PAUSE_S)
        value = headers.get("retry-after")
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return min(float(value), LONGEST_PAUSE_S)
        return min(max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0), LONGEST_PAUSE_S)
    except (ValueError, TypeError):
        return None
