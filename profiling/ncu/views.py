"""The page of an Nsight Compute report: its kernels, and one of them in full."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from profiling.models import Profile
from profiling.ncu import page, roofline
from profiling.ncu.groups import Group, groups
from profiling.ncu.metrics import Metrics
from profiling.ncu.store import INDEX, Launches

MAX_OTHERS = 12
MAX_ROWS = 3000


def is_report(profile: Profile) -> bool:
    return Launches.exist(profile.store_path)


def report(request: HttpRequest, profile: Profile) -> HttpResponse:
    """All kernels in groups; ``?launch=`` picks the one that is shown in full. For htmx only that one is drawn."""
    launches = opened(profile.store_path)
    found = groups(launches.launches)
    context: dict[str, Any] = {"profile": profile, "summary": profile.summary, "groups": found}
    if found:
        context |= kernel_context(launches, found, launch_number(request, launches, found[0].typical))
    template = "profiling/_ncu_kernel.html" if request.headers.get("HX-Request") else "profiling/ncu.html"
    return render(request, template, context)


@require_safe
def metrics(request: HttpRequest, pk: UUID, launch: int) -> HttpResponse:
    """Every metric of a launch as a table; ``?q=`` narrows it."""
    profile = get_object_or_404(Profile, pk=pk)
    launches = opened_or_404(profile)
    if launch >= len(launches.launches):
        raise Http404("no such launch")
    rows = page.rows(Metrics(launches.details(launch)["metrics"]), request.GET.get("q", "")[:200])
    context = {"rows": rows[:MAX_ROWS], "left": max(0, len(rows) - MAX_ROWS)}
    return render(request, "profiling/_ncu_metrics.html", context)


def kernel_context(launches: Launches, found: list[Group], index: int) -> dict[str, Any]:
    group = next(g for g in found if index in g.launches)
    kernel = page.kernel(index, group, launches.launches[index], launches.details(index))
    others = [
        (g.name, other)
        for g in found[:MAX_OTHERS]
        if index not in g.launches and kernel.roofline and (other := roof_of(launches, g.typical))
    ]
    listed = [(i, Metrics(launches.launches[i]["metrics"]).number(page.DURATION_NS)) for i in group.launches]
    return {
        "kernel": kernel,
        "figures": page.figures(kernel),
        "plot": page.plot(kernel, others),
        "launches": listed[: page.MAX_LAUNCHES],
        "launches_left": max(0, len(listed) - page.MAX_LAUNCHES),
    }


def roof_of(launches: Launches, index: int) -> roofline.Roofline | None:
    return roofline.roofline(Metrics(launches.details(index)["metrics"]))


def launch_number(request: HttpRequest, launches: Launches, default: int) -> int:
    text = request.GET.get("launch", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
    if number >= len(launches.launches):
        raise Http404("no such launch")
    return number


def opened(path: Path) -> Launches:
    return _open(path, (path / INDEX).stat().st_mtime_ns)


def opened_or_404(profile: Profile) -> Launches:
    if not profile.is_ready() or not is_report(profile):
        raise Http404("not an Nsight Compute report")
    return opened(profile.store_path)


@lru_cache(maxsize=8)
def _open(path: Path, written_ns: int) -> Launches:
    return Launches(path)
