"""The audit trail as a page, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from campaigns.presenters.trail import FIELDS
from campaigns.presenters.trail import trail as entries_of

A_PAGE = 100
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@require_safe
def trail(request: HttpRequest) -> HttpResponse:
    campaign = wanted(request)
    page = Paginator(entries_of(campaign), A_PAGE).get_page(request.GET.get("page"))
    return render(request, "review/trail.html", {"page": page, "campaign": campaign})


@require_safe
def export(request: HttpRequest, form: str) -> HttpResponse:
    """``trail.csv`` or ``trail.json``: every entry, the latest first."""
    if form not in ("csv", "json"):
        raise Http404("no such form")
    entries = entries_of(wanted(request))
    body, kind = (as_csv(entries), "text/csv") if form == "csv" else (as_json(entries), "application/json")
    headers = {"Content-Disposition": f'attachment; filename="audit-trail.{form}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(body, content_type=f"{kind}; charset=utf-8", headers=headers)


def wanted(request: HttpRequest) -> int | None:
    text = request.GET.get("campaign", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def as_json(entries: list[dict[str, Any]]) -> str:
    return json.dumps({"schema": 1, "entries": entries}, ensure_ascii=False, indent=1)


def as_csv(entries: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS)
    writer.writeheader()
    for entry in entries:
        writer.writerow({name: cell(value) for name, value in entry.items()})
    return out.getvalue()


def cell(value: Any) -> str:
    """A text as a spreadsheet may read it: what would be taken for a formula begins with an apostrophe."""
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text
