"""What the timeline asks for while a person moves through it. JSON, with an ETag by content hash and window."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import condition, require_safe

from profiling.details import describe
from profiling.models import Profile, State
from profiling.opened import Gone, store_of
from profiling.store import STORE_VERSION, Store

MAX_PIXELS = 6000
INT64 = 1 << 62


class BadWindow(ValueError):
    """A parameter that is no number or makes no window."""


def ready_store(pk: UUID) -> Store:
    profile = get_object_or_404(Profile.objects.defer("summary", "findings"), pk=pk, state=State.READY)
    try:
        return store_of(profile)
    except Gone as error:
        raise Http404(str(error)) from error


def number(request: HttpRequest, name: str, low: int, high: int) -> int:
    text = request.GET.get(name, "")
    try:
        value = int(text)
    except ValueError:
        raise BadWindow(f"{name}={text[:40]!r} is no whole number.") from None
    if not low <= value <= high:
        raise BadWindow(f"{name}={value} is outside of {low} to {high}.")
    return value


def asked(request: HttpRequest) -> tuple[int, int, int]:
    lo, hi = (number(request, name, -INT64, INT64) for name in ("lo", "hi"))
    if hi <= lo:
        raise BadWindow(f"hi={hi} is not after lo={lo}.")
    return lo, hi, number(request, "px", 1, MAX_PIXELS)


def window_etag(request: HttpRequest, pk: UUID) -> str | None:
    sha256 = Profile.objects.filter(pk=pk, state=State.READY).values_list("sha256", flat=True).first()
    try:
        lo, hi, pixels = asked(request)
    except BadWindow:
        return None
    return f'"{sha256[:16]}.{STORE_VERSION}.{lo}.{hi}.{pixels}"' if sha256 else None


@require_safe
@condition(etag_func=window_etag)
def window(request: HttpRequest, pk: UUID) -> HttpResponse:
    """``?lo=&hi=`` in ns, ``px`` wide: rows of bars or of busy shares (``Store.window``)."""
    try:
        lo, hi, pixels = asked(request)
    except BadWindow as error:
        return JsonResponse({"error": str(error)}, status=400)
    response = HttpResponse(ready_store(pk).window_json(lo, hi, pixels), content_type="application/json")
    response["Cache-Control"] = "private, max-age=86400"
    return response


@require_safe
def event(request: HttpRequest, pk: UUID, event: int) -> HttpResponse:
    """All that is known of one event."""
    store = ready_store(pk)
    if event >= len(store.column("start")):
        raise Http404("There is no such event.")
    return JsonResponse(describe(store, event))


@require_safe
def find(request: HttpRequest, pk: UUID) -> HttpResponse:
    """``?q=&at=[&back=1]``: the next event whose name holds the text, or null; how many names do."""
    text = request.GET.get("q", "").strip()
    if not text:
        return JsonResponse({"event": None, "names": 0})
    try:
        at = number(request, "at", -INT64, INT64)
    except BadWindow as error:
        return JsonResponse({"error": str(error)}, status=400)
    store = ready_store(pk)
    names = store.names_matching(text[:200])
    found = store.find(names, at, "back" in request.GET) if len(names) else None
    answer: dict[str, Any] = {"names": len(names), "event": None if found is None else describe(store, found)}
    return JsonResponse(answer)
