from __future__ import annotations

import hashlib

from django.db import IntegrityError, models, transaction


class UsedLink(models.Model):
    """A one-time sign-in link that has been used. Only its hash is kept."""

    sha256 = models.CharField(max_length=64, unique=True)
    used_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]

    @classmethod
    def claim(cls, token: str) -> bool:
        """True for the first who asks, whoever else asks at the same moment."""
        try:
            with transaction.atomic():
                cls.objects.create(sha256=hashlib.sha256(token.encode()).hexdigest())
        except IntegrityError:
            return False
        return True
