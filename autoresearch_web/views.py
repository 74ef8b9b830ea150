from __future__ import annotations

import sys

from django.contrib.auth import authenticate, logout
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from . import access, host_faults


def sign_in(request: HttpRequest) -> HttpResponse:
    """By a one-time link (``?token=…``) or by name and password."""
    if token := request.GET.get("token"):
        user = access.redeem(token)
        if user is not None:
            access.sign_in(request, user)
            return redirect(access.safe_next(request))
        error = "This link was used already or is too old. On the machine where it runs, manage.py login_link prints a new one."
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


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault in a page. Where the host is at fault (a full disk, a database that is held) it says so, with 503."""
    error = sys.exc_info()[1]
    found = host_faults.explained(error) if error is not None else None
    if found is None:
        return HttpResponse(render_to_string("500.html"), status=500)
    said = f"The server cannot do this now: {found['error']}. Nothing was changed."
    hint = f"{found['hint'][:1].upper()}{found['hint'][1:]}."
    if "application/json" in request.headers.get("Accept", ""):
        return JsonResponse({"error": f"{said} {hint}"}, status=503)
    if request.headers.get("HX-Request"):
        return HttpResponse(f"{said} {hint}", status=503, content_type="text/plain; charset=utf-8")
    return HttpResponse(render_to_string("refused.html", {"error": said, "hint": hint}), status=503)
