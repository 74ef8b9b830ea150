"""Where models are served: addresses, keys, and how many requests may be under way at one host.

A campaign names an endpoint and never an address: whoever could write an address into a campaign could have the key
sent to it. Addresses and keys are the administrator's, in the environment; ``docs/agents.md`` lists the variables.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .base import ProposerError

DEFAULT_URL = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}\Z")
_SHAPES = re.compile(r"\b(?:sk|key|hf|gsk|xai|pk)[-_][A-Za-z0-9_-]{16,}|(?i:bearer)\s+[A-Za-z0-9._-]{16,}")
POLL_S = 0.2


@dataclass(frozen=True)
class Endpoint:
    """One server. The key is left out of every representation."""

    name: str
    protocol: str
    url: str
    key: str = field(repr=False)

    @property
    def host(self) -> str:
        parts = urlsplit(self.url)
        return parts.hostname or "?" if parts.port is None else f"{parts.hostname}:{parts.port}"

    def redacted(self, text: object) -> str:
        """``text`` without this endpoint's key, or anything that looks like one. At most 600 characters."""
        said = str(text).replace(self.key, "•••") if self.key else str(text)
        return _SHAPES.sub("•••", said)[:600]


def find(protocol: str, name: str = "", environment: Mapping[str, str] = os.environ) -> Endpoint:
    """The endpoint of that name. Raises ``ProposerError`` that says which variable to set.

    The unnamed one is the vendor's own (``ANTHROPIC_BASE_URL``, ``OPENAI_BASE_URL`` put another in its place). Named
    ones stand in ``OPENAI_ENDPOINTS`` or ``ANTHROPIC_ENDPOINTS``, as ``name=url`` with commas between; their keys in
    ``<NAME>_API_KEY``. The vendor's key is never sent to a named one.
    """
    prefix = protocol.upper()
    if not name:
        url = environment.get(f"{prefix}_BASE_URL") or DEFAULT_URL[protocol]
        return endpoint(protocol, protocol, url, f"{prefix}_API_KEY", environment)
    known = named(protocol, environment)
    if name not in known:
        there = ", ".join(known) or "none"
        raise ProposerError(f"There is no endpoint {name!r}. {prefix}_ENDPOINTS lists them; there are: {there}.")
    return endpoint(protocol, name, known[name], re.sub(r"\W", "_", name.upper()) + "_API_KEY", environment)


def endpoint(protocol: str, name: str, url: str, variable: str, environment: Mapping[str, str]) -> Endpoint:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ProposerError(f"The address of endpoint {name!r} begins neither with http:// nor with https://.")
    key = secret(variable, environment)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1") or url != DEFAULT_URL[protocol]
    if not key and (name == protocol == "anthropic" or not local):
        raise ProposerError(f"No key for {parts.hostname}. Set {variable}, or {variable}_FILE to a file that holds it.")
    return Endpoint(name, protocol, url, key)


def named(protocol: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in environment.get(f"{protocol.upper()}_ENDPOINTS", "").split(","))
    found = {name.strip(): url.strip() for name, _, url in pairs if url.strip()}
    for name in found:
        if not _NAME.match(name):
            raise ProposerError(f"{protocol.upper()}_ENDPOINTS: {name!r} is no name: small letters, digits, - and _.")
    return found


def secret(variable: str, environment: Mapping[str, str] = os.environ) -> str:
    """A key from the environment, or from the file that ``<variable>_FILE`` names. Empty: there is none."""
    if key := environment.get(variable, "").strip():
        return key
    path = environment.get(f"{variable}_FILE", "")
    try:
        return Path(path).expanduser().read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ProposerError(f"{variable}_FILE cannot be read: {type(error).__name__}.") from None


@contextmanager
def slot(folder: Path, host: str, limit: int, should_stop: Callable[[], bool]) -> Iterator[bool]:
    """Hold one of ``limit`` places at a host, over all processes of this machine; wait while all are taken.

    Places are file locks: the system frees them when a process dies. Gives False when ``should_stop`` said so.
    """
    where = folder / hashlib.sha256(host.encode()).hexdigest()[:16]
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    while not should_stop():
        for number in range(max(1, limit)):
            with (where / str(number)).open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield True
                return
        time.sleep(POLL_S)
    yield False
