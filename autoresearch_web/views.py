from __future__ import annotations

from django.contrib.auth import authenticate, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from . import access


def sign_in(request: HttpRequest) -> HttpResponse:
    """By a one-time link (``?token=…``) or by name and password."""
    if token := request.GET.get("token"):
        user = access.redeem(token)
        if user is not None:
            access.sign_in(request, user)
            return redirect(access.safe_next(request))
        error = "This link was used already or is too old. `manage.py login_link` prints a new one."
        if request.user.is_authenticated:
            return redirect(access.safe_next(request))
        return render(request, "login.html", {"error": error}, status=403)
    if request.method == "POST":
        person = authenticate(request, username=request.POST.get("username"), password=request.POST.get("password"))
        if person is not None:
            access.sign_in(request, person)
            return redirect(access.safe_next(request))
        return render(request, "login.html", {"error": "Name or password is wrong."}, status=403)
    return render(request, "login.html", {"next": request.GET.get("next", "")})


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("login")


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")
