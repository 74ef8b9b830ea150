from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from profiling import uploads
from profiling.models import Profile

PER_PAGE = 50
OF = {"uploads": False, "attempts": True}
"""``?of=``: captures that people uploaded, or that evaluators took of attempts. The value says whether nobody uploaded it."""


@require_safe
def profiles(request: HttpRequest) -> HttpResponse:
    """What people uploaded comes first: of what evaluators took there may be hundreds."""
    found = Profile.objects.select_related("uploaded_by").defer("summary", "findings")
    found = found.annotate(by_nobody=Q(uploaded_by=None)).order_by("by_nobody", "-created_at")
    of = request.GET.get("of", "")
    if of in OF:
        found = found.filter(uploaded_by__isnull=OF[of])
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "of": of if of in OF else "",
        "kinds": [("", "all"), ("uploads", "uploaded"), ("attempts", "of attempts")],
        "page": page,
        "limit_bytes": settings.PROFILE_MAX_BYTES,
        "importing": any(profile.is_busy() for profile in page),
    }
    return render(request, "profiling/_rows.html" if request.GET.get("part") else "profiling/list.html", context)


@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Take one file. Scripts ask for JSON and get ``{"url", "known"}`` or ``{"error"}``; a plain form is redirected."""
    as_json = "application/json" in request.headers.get("Accept", "")
    file = request.FILES.get("file")
    try:
        if not isinstance(file, UploadedFile):
            raise uploads.NotTaken("No file came with the form: choose one, then upload.")
        profile, is_new = uploads.take(file, request.user)
    except uploads.NotTaken as error:
        if as_json:
            return JsonResponse({"error": str(error)}, status=422)
        messages.error(request, str(error), extra_tags="bad")
        return redirect("profiles")
    if not is_new:
        messages.info(request, f"These bytes are here already, as {profile.name}.")
    return JsonResponse({"url": profile.get_absolute_url(), "known": not is_new}) if as_json else redirect(profile)
