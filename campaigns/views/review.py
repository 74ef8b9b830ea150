from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from autoresearch_web import access
from campaigns import actions, remeasuring
from campaigns.actions import ActionError
from campaigns.models import Attempt, Campaign, Decision
from campaigns.presenters import review as presenter

from .attempts import wanted_diff
from .replies import attempted


@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """The oldest candidate that waits, or the empty queue."""
    first = presenter.waiting().first()
    return show(request, first)


@require_safe
def candidate(request: HttpRequest, pk: int) -> HttpResponse:
    """One candidate, waiting or decided: an address that can be sent to a colleague."""
    return show(request, find(pk))


@require_safe
def signature(request: HttpRequest, pk: int) -> HttpResponse:
    """What an approval for the range in the fields would sign."""
    attempt = find(pk)
    try:
        sha256 = attempt.signed_sha256(range_from(request.GET, attempt))
    except ActionError as error:
        return render(request, "review/_signature.html", {"problem": str(error)}, status=422)
    return render(request, "review/_signature.html", {"sha256": sha256})


@require_POST
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    attempt = find(pk)

    def act() -> object:
        range_ = range_from(request.POST, attempt) if request.POST.get("axis") else None
        sha256 = request.POST.get("range_sha256") if range_ else request.POST.get("sha256")
        if range_ and not sha256 and request.POST.get("sha256") == attempt.signed_sha256():
            sha256 = attempt.signed_sha256(range_)  # a page without scripts has shown the hash without a range
        return actions.approve(attempt, access.person(request), seen=seen(request), sha256=sha256 or "", range_=range_)

    return decide(request, attempt, act, lambda: approved_words(attempt))


def approved_words(attempt: Attempt) -> str:
    where = f"attempt {attempt.number} of {attempt.campaign.title}"
    if Attempt.objects.get(pk=attempt.pk).decision == Decision.SIGNED:
        return f"Signed {where}. A second signature makes it an approval."
    return f"Approved {where}."


@require_POST
def reject(request: HttpRequest, pk: int) -> HttpResponse:
    attempt = find(pk)
    kind, reason = request.POST.get("kind", ""), request.POST.get("reason", "").strip()

    def act() -> object:
        if not reason:
            raise ActionError("Say why: the agent reads it, and so does the next reviewer.")
        return actions.reject(attempt, access.person(request), seen=seen(request), kind=kind, reason=reason)

    return decide(request, attempt, act, lambda: f"Rejected attempt {attempt.number} of {attempt.campaign.title}.")


@require_safe
def bar(request: HttpRequest, pk: int) -> HttpResponse:
    """The bar of decisions alone: after a flag was decided, what holds an approval back is another."""
    context = presenter.decision_bar(find(pk), access.person(request))
    return render(request, "review/_bar.html", {**context, "typed": {}})


@require_http_methods(["GET", "HEAD", "POST"])
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Measurements after the verdict. POST asks for one more."""
    attempt, problem, ok = find(pk), "", True
    if request.method == "POST":
        problem, ok = attempted(lambda: remeasuring.ask(attempt, access.person(request)))
        if not request.headers.get("HX-Request"):
            messages.info(request, problem or "It is being measured again.", extra_tags="" if ok else "bad")
            return redirect(address(attempt) if attempt.verdict == "kept" else attempt.get_absolute_url())
    rows = list(attempt.remeasurements.select_related("by")[:5])
    context = {"attempt": attempt, "again": rows, "again_problem": problem}
    return render(request, "attempts/_again.html", context, status=200 if ok else 409)


def decide(request: HttpRequest, attempt: Attempt, act: Any, done: Callable[[], str]) -> HttpResponse:
    """On to the next candidate; when it was refused the same one again, with what was typed and why it was refused."""
    following = presenter.place(attempt)["next"]
    problem, ok = attempted(act)
    if not ok:
        attempt = find(attempt.pk)
        extra = {"problem": problem, "typed": request.POST}
        return show(request, attempt, extra, status=409, partial=bool(request.headers.get("HX-Request")))
    target = find(following) if following else presenter.waiting().first()
    said = problem or done()
    if not request.headers.get("HX-Request"):
        messages.info(request, said)
        return redirect(address(target))
    return show(request, target, {"done": said, "undo": attempt}, partial=True)


def show(
    request: HttpRequest,
    attempt: Attempt | None,
    extra: dict[str, Any] | None = None,
    status: int = 200,
    partial: bool = False,
) -> HttpResponse:
    against, view = wanted_diff(request)
    context: dict[str, Any] = {"diff_view": view, "typed": {}, "address": address(attempt), **(extra or {})}
    if attempt is not None:
        context |= presenter.candidate(attempt, against, access.person(request))
    else:
        context["running"] = Campaign.objects.filter(state__in=("queued", "running"))[:5]
    partial = partial or bool(request.headers.get("HX-Request"))
    return render(request, "review/_candidate.html" if partial else "review/queue.html", context, status=status)


def find(pk: int) -> Attempt:
    attempts = Attempt.objects.select_related("campaign", "parent", "idea__author")
    return get_object_or_404(attempts.exclude(verdict=""), pk=pk)


def address(attempt: Attempt | None) -> str:
    return reverse("review_candidate", args=[attempt.pk]) if attempt else reverse("review")


def seen(request: HttpRequest) -> int:
    text = request.POST.get("seen", "")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise ActionError("The form does not say which decision it saw. Load the page again.")
    return int(text)


def range_from(fields: Any, attempt: Attempt) -> dict[str, Any]:
    """``{axis, lo, hi}`` as typed. Raises ``ActionError`` for what is no range."""
    axis = fields.get("axis", "").strip()
    try:
        lo, hi = (int(fields.get(name, "").replace(",", "").replace("_", "").strip()) for name in ("lo", "hi"))
    except ValueError:
        raise ActionError("A range needs two whole numbers, from and to.") from None
    if axis not in {name for row in attempt.measurements.all() for name in row.axes}:
        raise ActionError(f"The problem has no axis {axis!r}.")
    if not 0 <= lo <= hi < 1 << 53:
        raise ActionError(f"{lo:,} to {hi:,} is no range: the first number is the smaller one, and none is below 0.")
    return {"axis": axis, "lo": lo, "hi": hi}
