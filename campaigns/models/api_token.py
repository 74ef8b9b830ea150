from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

from .campaign import Campaign

MARK = "arw_"
"""How every token begins, so that people and secret scanners know one when they see it."""
PREFIX_CHARS = len(MARK) + 8
NOTE_USE_EVERY = timedelta(minutes=1)


class Scope(models.TextChoices):
    """What a token may do. There is none for approving, rejecting or dismissing: those are a person's."""

    READ = "read", "read campaigns, tasks, verdicts and findings"
    SUBMIT = "submit", "submit candidates"
    CREATE = "create", "create and start campaigns"


class ApiToken(models.Model):
    """A key for an agent. Only its SHA-256 is kept: 256 random bits need no slow hash."""

    name = models.CharField(max_length=80)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    campaign = models.ForeignKey(
        Campaign, null=True, blank=True, on_delete=models.CASCADE, help_text="The only campaign that it reaches"
    )
    scopes = models.JSONField(default=list)
    prefix = models.CharField(max_length=PREFIX_CHARS, db_index=True)
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def issue(
        cls,
        name: str,
        scopes: list[str],
        owner: User | None = None,
        campaign: Campaign | None = None,
        days: int | None = None,
    ) -> tuple[ApiToken, str]:
        """The row and the token itself, which is shown once and kept nowhere. Raises ``ValueError``: what was wrong."""
        name = " ".join(name.replace("\x00", "").split())
        if not name or len(name) > 80:
            raise ValueError("A token wants a name of 1 to 80 characters: what will use it?")
        unknown = [scope for scope in scopes if scope not in Scope.values]
        if unknown or not scopes:
            raise ValueError(f"Scopes are some of: {', '.join(Scope.values)}.")
        if days is not None and not 1 <= days <= 3650:
            raise ValueError("A token lasts 1 to 3650 days, or for ever when no number is given.")
        if campaign is not None and Scope.CREATE in scopes:
            raise ValueError("A token for one campaign cannot create others: leave out `create`, or the campaign.")
        secret = MARK + secrets.token_urlsafe(32)
        row = cls.objects.create(
            name=name,
            owner=owner,
            campaign=campaign,
            scopes=[scope for scope in Scope.values if scope in scopes],
            prefix=secret[:PREFIX_CHARS],
            sha256=digest(secret),
            expires_at=timezone.now() + timedelta(days=days) if days else None,
        )
        return row, secret

    @classmethod
    def find(cls, secret: str) -> ApiToken | None:
        """The living token behind ``secret``, or None: unknown, revoked, too old, or its owner was deactivated."""
        token = cls.objects.select_related("owner").filter(sha256=digest(secret)).first()
        if token is None or not token.is_alive():
            return None
        token.note_use()
        return token

    def is_alive(self) -> bool:
        return self.state() == "active"

    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        if self.expires_at and self.expires_at <= timezone.now():
            return "expired"
        return "active" if self.owner is None or self.owner.is_active else "owner inactive"

    def revoke(self) -> bool:
        """False: it was revoked before."""
        return ApiToken.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now()) == 1

    def note_use(self) -> None:
        """At most once a minute, so that a busy agent does not write on every call."""
        old = timezone.now() - NOTE_USE_EVERY
        unseen = models.Q(last_used_at=None) | models.Q(last_used_at__lt=old)
        ApiToken.objects.filter(unseen, pk=self.pk).update(last_used_at=timezone.now())


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
