"""How a POST answers: a refusal is shown as it is and loses nothing; htmx gets parts, others a redirect."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from campaigns.actions import ActionError

log = logging.getLogger(__name__)
BROKER_AWAY = (
    "It is saved, but the broker does not answer: it goes on by itself once the broker is back (`manage.py doctor`)."
)


def attempted(act: Callable[[], object]) -> tuple[str, bool]:
    """Do it. ("", True) when done, (what to say, whether it was done) else.

    The broker is told after the commit: when it is away the change stands, and the watch takes it up later.
    """
    try:
        act()
    except ActionError as error:
        return str(error), False
    except (OperationalError, RedisError, ConnectionError) as error:
        log.warning("the broker does not answer: %s", error)
        return BROKER_AWAY, True
    return "", True


def act_and_tell(request: HttpRequest, act: Callable[[], object], done: str, back: str) -> HttpResponse:
    """Do it and say so: htmx swaps the sentence into ``#notice``, a plain form goes back to ``back`` with it on top."""
    problem, ok = attempted(act)
    text, tone = (problem, "" if ok else "bad") if problem else (done, "")
    if request.headers.get("HX-Request"):
        return render(request, "_notice.html", {"text": text, "tone": tone}, status=200 if ok else 409)
    messages.add_message(request, messages.INFO, text, extra_tags=tone)
    return redirect(back)
