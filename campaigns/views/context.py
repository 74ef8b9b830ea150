"""What agents know: the cards with their versions, and the lessons."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from markdown_it import MarkdownIt

from autoresearch_web import access
from campaigns import catalog
from campaigns.context import library
from campaigns.context.cards import KINDS, Card, CardChanged, CardError, choose
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import read_folder
from campaigns.memory import people
from campaigns.models import CardHead, CardVersion, Lesson
from campaigns.presenters.diffs import diff_files

from .replies import act_and_tell

TITLES = {"hardware": "Hardware", "models": "Models", "dsl": "Languages", "rules": "Rules"}
markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def as_html(text: str) -> str:
    """HTML in a card comes out as text: html is off. The empty corner of a table is a cell and heads nothing."""
    return markdown.render(text).replace("<th></th>", "<td></td>")


@require_safe
def cards(request: HttpRequest) -> HttpResponse:
    found, faults = library.current()
    seen = dict(CardVersion.objects.values_list("name").annotate(n=Count("attempts", distinct=True)).order_by())
    versions = dict(CardVersion.objects.values_list("name").annotate(n=Count("id")).order_by())
    rows = [
        {"card": card, "seen": seen.get(card.name, 0), "versions": max(1, versions.get(card.name, 0))}
        for card in found.values()
    ]
    groups = [(TITLES[kind], [row for row in rows if row["card"].kind == kind]) for kind in KINDS]
    context = {"groups": groups, "faults": faults, "folder": library.team_folder(), "lessons": Lesson.objects.count()}
    return render(request, "context/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def card(request: HttpRequest, kind: str, slug: str) -> HttpResponse:
    """One card as it holds now, or in the wording ``?version=``; POST writes a new wording."""
    name = f"{kind}/{slug}"
    if request.method == "POST":
        return save(request, name)
    now = library.current()[0].get(name)
    wanted = request.GET.get("version", "")
    version = CardVersion.objects.filter(name=name, sha256__startswith=wanted).first() if len(wanted) >= 8 else None
    if now is None and version is None:
        raise Http404("no such card")
    return render(request, "context/card.html", shown(now, version))


def shown(now: Card | None, version: CardVersion | None, typed: dict[str, str] | None = None) -> dict[str, Any]:
    card = version.card() if version else now
    assert card is not None
    return {
        "card": card,
        "now": now,
        "is_now": now is not None and now.sha256 == card.sha256,
        "body": mark_safe(as_html(card.body)),
        "versions": CardVersion.objects.filter(name=card.name)
        .select_related("author")
        .annotate(n=Count("attempts"))
        .order_by("-id"),
        "is_edited": CardHead.objects.filter(name=card.name).exclude(version=None).exists(),
        "attempts": version_attempts(card),
        "typed": typed or {"text": card.text, "note": "", "seen": now.sha256 if now else ""},
    }


def version_attempts(card: Card) -> Any:
    found = CardVersion.objects.filter(name=card.name, sha256=card.sha256).first()
    return found.attempts.select_related("campaign").order_by("-id")[:20] if found else []


def save(request: HttpRequest, name: str) -> HttpResponse:
    typed = {key: request.POST.get(key, "") for key in ("text", "note", "seen")}
    try:
        version = library.edit(
            name, typed["text"], seen=typed["seen"], person=access.person(request), note=typed["note"]
        )
    except CardError as error:
        messages.error(request, str(error), extra_tags="bad")
        now = library.current()[0].get(name)
        if now is None:
            return render(
                request, "context/new.html", {"name": name, "text": typed["text"], "kinds": KINDS}, status=422
            )
        context = {**shown(now, None, typed), "editing": True}
        if isinstance(error, CardChanged):  # told of it, the same person may well save over it
            typed["seen"] = now.sha256
            context["diff"] = {"files": diff_files({name: now.text}, {name: typed["text"].replace("\r\n", "\n")})}
        return render(request, "context/card.html", context, status=422)
    messages.success(request, "Saved. Proposals from now on read it; attempts made before keep what they saw.")
    return redirect("card", *version.name.split("/"))


@require_http_methods(["GET", "HEAD", "POST"])
def new_card(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return save(request, request.POST.get("name", "").strip().lower())
    text = "---\ntitle: \nmatch: \n---\n# \n"
    return render(request, "context/new.html", {"name": "", "text": text, "kinds": KINDS})


@require_POST
def go_back(request: HttpRequest, pk: int) -> HttpResponse:
    version = get_object_or_404(CardVersion, pk=pk)
    try:
        library.go_back(version)
        messages.success(request, "This wording holds again.")
    except CardError as error:
        messages.error(request, str(error), extra_tags="bad")
    return redirect("card", *version.name.split("/"))


@require_safe
def chosen(request: HttpRequest) -> HttpResponse:
    """Which cards a campaign with ``?problem=&hardware=&backend=`` would get, and how long they are together."""
    try:
        files = read_folder(catalog.find(request.GET.get("problem", "")))
    except (ProblemError, catalog.UnknownProblem):
        files = {}
    found = choose(
        library.current()[0].values(),
        hardware=request.GET.get("hardware", ""),
        backend=request.GET.get("backend", ""),
        about=library.what_it_says(files),
    )
    return render(request, "context/_chosen.html", {"cards": found, "tokens": sum(card.tokens for card in found)})


@require_safe
def lessons(request: HttpRequest) -> HttpResponse:
    problem, hardware = request.GET.get("problem", ""), request.GET.get("hardware", "")
    found = Lesson.objects.select_related("attempt__campaign", "author", "decided_by")
    found = found.order_by("struck_at", "-pinned_at", "-updated_at")
    if problem:
        found = found.filter(problem=problem)
    if hardware:
        found = found.filter(hardware=hardware)
    context = {
        "page": Paginator(found, 100).get_page(request.GET.get("page")),
        "problem": problem,
        "hardware": hardware,
        "problems": Lesson.objects.order_by("problem").values_list("problem", flat=True).distinct(),
        "hardware_kinds": Lesson.objects.order_by("hardware").values_list("hardware", flat=True).distinct(),
    }
    return render(request, "context/lessons.html", context)


@require_POST
def add_lesson(request: HttpRequest) -> HttpResponse:
    given = request.POST
    problem, hardware, backend, text = (given.get(key, "") for key in ("problem", "hardware", "backend", "text"))
    by, done = access.person(request), "Noted. Every proposal for this problem and hardware reads it."
    return act_and_tell(request, lambda: people.add(problem, hardware, backend, text, by), done, "/context/lessons/")


@require_POST
def decide_lesson(request: HttpRequest, pk: int) -> HttpResponse:
    lesson = get_object_or_404(Lesson, pk=pk)
    verb = request.POST.get("verb", "")
    done = {"pin": "Pinned: it is told first.", "strike": "Struck: it is not told any more."}.get(verb, "Done.")
    back = request.POST.get("back", "")
    target = back if back.startswith("/context/lessons/") else "/context/lessons/"
    return act_and_tell(request, lambda: people.decide(lesson, verb, access.person(request)), done, target)
