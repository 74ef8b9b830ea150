"""Who asks: a token, or a person with a shell on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from campaigns.actions.submit import Refusal
from campaigns.models import ApiToken, Scope


class ApiError(Refusal):
    """An answer that is no result: what was wrong, what to do, and HTTP's number for it."""

    def __init__(self, status: int, error: str, hint: str, **details: Any) -> None:
        super().__init__(error, hint, status=status)
        self.details = details


@dataclass(frozen=True, kw_only=True)
class Caller:
    name: str
    """Shown beside every attempt that it submits."""
    key: str
    """Whose requests are counted together."""
    scopes: tuple[str, ...]
    person: User | None = None
    campaign: int | None = None
    """The only campaign that it reaches; None: all."""

    @classmethod
    def of(cls, token: ApiToken) -> Caller:
        return cls(
            name=token.name,
            key=f"token:{token.pk}",
            scopes=tuple(token.scopes),
            person=token.owner,
            campaign=token.campaign_id,
        )

    def need(self, scope: Scope) -> None:
        if scope not in self.scopes:
            have = ", ".join(self.scopes) or "none"
            hint = (
                f"It has: {have}. Make another with `manage.py api_token create NAME --scopes {scope}` or at /tokens/."
            )
            raise ApiError(403, f"This token lacks the scope `{scope}`.", hint)


def caller_of(secret: str) -> Caller:
    """Raises ``ApiError`` 401 for a token that opens nothing."""
    token = ApiToken.find(secret) if secret else None
    if token is None:
        hint = "Send `Authorization: Bearer arw_…`. `manage.py api_token create` or the page /tokens/ makes a token."
        raise ApiError(401, "No valid token." if not secret else "This token is unknown, revoked or expired.", hint)
    return Caller.of(token)
