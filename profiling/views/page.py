from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from profiling import importing
from profiling.models import Profile
from profiling.ncu import views as ncu
from profiling.opened import Gone, store_of
from profiling.store import Store


@require_safe
def profile(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = get_object_or_404(Profile.objects.select_related("uploaded_by"), pk=pk)
    if not found.is_ready():
        return render(request, "profiling/not_ready.html", {"profile": found})
    if ncu.is_report(found):
        return ncu.report(request, found)
    try:
        store = store_of(found)
    except Gone as error:
        return render(request, "profiling/not_ready.html", {"profile": found, "gone": str(error)}, status=410)
    context = {
        "profile": found,
        "summary": found.summary,
        "regions": found.regions.select_related("author"),
        "timeline": timeline_setup(found, store),
        "devices": found.summary.get("devices", []),
    }
    return render(request, "profiling/profile.html", context)


def timeline_setup(found: Profile, store: Store) -> dict[str, Any]:
    """What the timeline's script starts from: lanes and rows, the whole range in ns, where to ask for windows."""
    start, end = store.meta["start_ns"], store.meta["end_ns"]
    gpu_start, gpu_end = found.summary.get("start_ns", start), found.summary.get("end_ns", end)
    margin = max(1, (gpu_end - gpu_start) // 100)
    return {
        "start": start,
        "end": max(end, start + 1),
        "view": [max(start, gpu_start - margin), max(min(end, gpu_end + margin), start + 1)],
        "lanes": [{"kind": lane.kind, "label": lane.label} for lane in store.lanes]
        + [{"kind": "counter", "label": track.label} for track in store.counters],
        "rows": [{"lane": row.lane, "level": row.level} for row in store.rows]
        + [
            {"lane": len(store.lanes) + n, "level": 0, "low": track.low, "high": track.high, "unit": track.unit}
            for n, track in enumerate(store.counters)
        ],
        "version": found.sha256[:16],
        "urls": {
            "window": reverse("profile_window", args=[found.pk]),
            "event": reverse("profile_event", args=[found.pk, 0])[:-1],
            "find": reverse("profile_find", args=[found.pk]),
        },
    }


@require_safe
def status(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The state of an import, asked for every second while it runs. Ready: the page loads anew."""
    found = get_object_or_404(Profile, pk=pk)
    response = render(request, "profiling/_status.html", {"profile": found})
    if found.is_ready():
        response["HX-Refresh"] = "true"
    return response


@require_POST
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = get_object_or_404(Profile, pk=pk)
    if not found.has_upload() and not found.is_ready():
        messages.error(request, "The upload is no longer on disk: upload the file again.", extra_tags="bad")
    elif found.ask_again():
        importing.enqueue(found)
    return redirect(found)


@require_POST
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Whoever uploaded it, and staff, may delete a profile."""
    found = get_object_or_404(Profile, pk=pk)
    if found.uploaded_by not in (None, request.user) and not request.user.is_staff:
        messages.error(request, f"Only {found.uploaded_by} may delete this profile.", extra_tags="bad")
        return redirect(found)
    found.discard()
    messages.info(request, f"{found.name} is deleted.")
    return redirect("profiles")
