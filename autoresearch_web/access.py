"""Who may come in: everyone signs in. On one machine, by a one-time link, as Jupyter does; the rest have accounts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, MutableMapping
from io import BytesIO
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from django.conf import settings
from django.contrib.auth import get_user, login
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from .models import UsedLink

PUBLIC = ("/login", "/healthz", settings.STATIC_URL, "/api/")
"""Below ``/api/`` a token is asked for instead (campaigns.api.rest); a session opens nothing there."""
LINK_AGE_S = 24 * 3600
MAX_NEXT_CHARS = 2000
_SALT = "autoresearch_web.login-link"


class LoginRequiredMiddleware:
    """Every page wants a signed-in person, but for ``PUBLIC``. API clients get 401 and no redirect."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated or request.path.startswith(PUBLIC):
            return self.get_response(request)
        if request.headers.get("HX-Request"):
            return HttpResponse(
                status=401, headers={"HX-Redirect": login_address(urlsplit(request.headers.get("HX-Current-URL", "/")))}
            )
        if "application/json" in request.headers.get("Accept", ""):
            return HttpResponse('{"error": "not signed in"}', status=401, content_type="application/json")
        return redirect(login_address(urlsplit(request.get_full_path())))


def login_address(page: SplitResult) -> str:
    """Where to sign in, and go back to ``page`` from, whose path alone counts."""
    path = f"{page.path}?{page.query}" if page.query else page.path
    return f"/login?next={quote(path, safe='/')}" if len(path) <= MAX_NEXT_CHARS else "/login"


def one_time_token(username: str) -> str:
    """A signed token that signs ``username`` in once, within a day. The account is made when it is not there."""
    User.objects.get_or_create(username=username)
    return signing.dumps({"user": username, "nonce": secrets.token_urlsafe(12)}, salt=_SALT)


def redeem(token: str) -> User | None:
    """The person whom a token names, the first time that it is used. None: wrong, too old, or used before."""
    try:
        data = signing.loads(token, salt=_SALT, max_age=LINK_AGE_S)
    except signing.BadSignature:
        return None
    if not UsedLink.claim(token):
        return None
    return User.objects.filter(username=data["user"], is_active=True).first()


def sign_in(request: HttpRequest, user: User) -> None:
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")


def person(request: HttpRequest) -> User:
    """Who asks. Behind ``LoginRequiredMiddleware`` there is always somebody."""
    assert isinstance(request.user, User)
    return request.user


def is_signed_in(scope: MutableMapping[str, Any]) -> bool:
    """The same question of an ASGI request whose body nobody has read yet."""
    request = ASGIRequest(scope, BytesIO())
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return get_user(request).is_authenticated


def safe_next(request: HttpRequest) -> str:
    """Where to go after signing in: a path of this site, never another."""
    target = request.GET.get("next") or request.POST.get("next") or "/"
    return target if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()) else "/"
