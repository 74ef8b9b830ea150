"""The Kernels page: what we own, export, withdraw."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from autoresearch_web import access
from campaigns import library
from campaigns.harness.errors import ProblemError
from campaigns.library import shelf
from campaigns.models import Kernel, KernelExport

from .replies import act_and_tell


@require_safe
def kernels(request: HttpRequest) -> HttpResponse:
    return render(request, "kernels/list.html", shown())


def shown() -> dict[str, Any]:
    operators: dict[str, list[dict[str, Any]]] = {}
    for kernel in library.kernels():
        operators.setdefault(kernel.operator, []).append(row(kernel))
    exports = KernelExport.objects.select_related("by").prefetch_related("kernels")[:50]
    return {
        "operators": list(operators.items()),  # an operator may be called "items"
        "exportable": [(name, rows) for name, rows in operators.items() if any(not r["why_not"] for r in rows)],
        "exports": [{"export": e, "off": e.no_longer_good()} for e in exports],
    }


def row(kernel: Kernel) -> dict[str, Any]:
    attempt = kernel.review.attempt
    try:
        problem = shelf.problem_of(kernel)
        served, baselines = shelf.served(kernel, problem), list(problem.baselines)
    except ProblemError as error:
        served, baselines = [str(error)], []
    return {
        "kernel": kernel,
        "review": kernel.review,
        "attempt": attempt,
        "why_not": kernel.why_not(),
        "served": [line.partition("; ")[::2] for line in served],
        "fallback": attempt.campaign.baseline,
        "baselines": baselines,
    }


@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    kernel = get_object_or_404(Kernel.objects.select_related("review__attempt__campaign"), pk=pk)
    reason = request.POST.get("reason", "")
    done = f"Withdrawn: {kernel}. Exports that hold it are marked below."
    return act_and_tell(request, lambda: library.withdraw(kernel, access.person(request), reason), done, "/kernels/")


@require_POST
def export(request: HttpRequest) -> HttpResponse:
    """Hand out a file; a refusal comes back to the page with its reason."""
    operators = request.POST.getlist("operator")
    fallbacks = {name: text.strip() for name in operators if (text := request.POST.get(f"fallback-{name}", "")).strip()}
    try:
        made = library.export(
            request.POST.get("form", "package"),
            access.person(request),
            operators=operators or None,
            name=request.POST.get("name", "").strip() or "approved_kernels",
            fallbacks=fallbacks,
            prefix=request.POST.get("prefix", "").strip(),
        )
    except (library.ExportError, ProblemError) as error:
        messages.error(request, str(error), extra_tags="bad")
        return redirect("kernels")
    kind = "text/x-patch; charset=utf-8" if made.note.form == "patch" else "application/zip"
    headers = {"Content-Disposition": f'attachment; filename="{made.filename}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(made.data, content_type=kind, headers=headers)
