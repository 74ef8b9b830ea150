"""Whether somebody who writes down when they were last alive has fallen silent: the clock may be set, the machine may sleep."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

JUMP_S = 5.0
"""A clock that is led (NTP) gains or loses milliseconds a second; one that went this far between two looks was set."""


def is_silent(seen: datetime, after_s: float) -> bool:
    """A time to come, as there is once the clock was set back, says no more than one as long ago."""
    return abs((timezone.now() - seen).total_seconds()) > after_s


def silent(field: str, after_s: float) -> Q:
    """``is_silent`` of a column; rows in which it is null are not among them."""
    now, limit = timezone.now(), timedelta(seconds=after_s)
    return Q(**{f"{field}__lt": now - limit}) | Q(**{f"{field}__gt": now + limit})


class Clock:
    """This process's view of the clock: the time of day against one that only runs while the machine does."""

    def __init__(self) -> None:
        self.offset_s = self.look()
        self.jumped_at_s = float("-inf")

    def look(self) -> float:
        return time.time() - time.monotonic()

    def was_set(self) -> bool:
        """Whether it was set, or the machine slept, so lately that those who live have not all had the time to say so."""
        offset_s = self.look()
        if abs(offset_s - self.offset_s) > JUMP_S:
            self.jumped_at_s = time.monotonic()
        self.offset_s = offset_s
        return time.monotonic() - self.jumped_at_s < settings.LOST_AFTER_S


clock = Clock()
