from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from profiling.models import Profile, Region, State
from profiling.models.region import MAX_NOTE_CHARS

MAX_REGIONS = 1000


class RegionForm(forms.ModelForm):
    class Meta:
        model = Region
        fields = ("start_ns", "end_ns", "note")

    note = forms.CharField(max_length=MAX_NOTE_CHARS, required=False)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        start, end = data.get("start_ns"), data.get("end_ns")
        if start is not None and end is not None and end <= start:
            raise forms.ValidationError("A region ends after it starts: drag over a stretch of the timeline.")
        return data


def show(request: HttpRequest, profile: Profile, error: str = "", marked: Region | None = None) -> HttpResponse:
    """The list of regions, as part of the page; without a script, the page itself."""
    if not request.headers.get("HX-Request"):
        if error:
            messages.error(request, error, extra_tags="bad")
        return redirect(marked or profile)
    context = {
        "profile": profile,
        "regions": profile.regions.select_related("author"),
        "error": error,
        "marked": marked,
    }
    return render(request, "profiling/_regions.html", context, status=422 if error else 200)


@require_POST
def create(request: HttpRequest, pk: UUID) -> HttpResponse:
    profile = get_object_or_404(Profile, pk=pk, state=State.READY)
    form = RegionForm(request.POST)
    if not form.is_valid():
        return show(request, profile, " ".join(str(e) for errors in form.errors.values() for e in errors))
    if profile.regions.count() >= MAX_REGIONS:
        return show(request, profile, f"This profile has {MAX_REGIONS} regions: delete some first.")
    region = form.save(commit=False)
    region.profile, region.author = profile, request.user
    try:
        region.measure()
    except OSError:
        return show(request, profile, "The columns of this profile are gone from disk: upload the file again.")
    region.save()
    return show(request, profile, marked=region)


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    region = get_object_or_404(Region.objects.select_related("profile", "author"), pk=pk)
    note = request.POST.get("note", "").strip()
    if error := may_not_change(request, region):
        return show(request, region.profile, error)
    if len(note) > MAX_NOTE_CHARS:
        return show(request, region.profile, f"A note has at most {MAX_NOTE_CHARS:,} characters.")
    region.note = note
    region.save(update_fields=["note"])
    return show(request, region.profile, marked=region)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    region = get_object_or_404(Region.objects.select_related("profile", "author"), pk=pk)
    if error := may_not_change(request, region):
        return show(request, region.profile, error)
    region.delete()
    return show(request, region.profile)


def may_not_change(request: HttpRequest, region: Region) -> str:
    """Why this person may not change the region; empty when they may."""
    if region.author in (None, request.user) or request.user.is_staff:
        return ""
    return f"Only {region.author} may change this region: mark one of your own."
