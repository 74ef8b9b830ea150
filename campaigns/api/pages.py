"""The page on which people make and revoke tokens of their own."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from campaigns.models import ApiToken, Campaign, Scope


def mine(request: HttpRequest) -> QuerySet[ApiToken]:
    """A person's own tokens; staff sees all."""
    rows = ApiToken.objects.select_related("owner", "campaign")
    return rows if getattr(request.user, "is_staff", False) else rows.filter(owner=request.user.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list. A POST makes a token and shows it this once; nothing that was typed is lost when it is refused."""
    typed = {"scopes": ["read", "submit"], "campaign": request.GET.get("campaign", "")[:18]}
    here = f"{request.scheme}://{request.get_host()}"
    context = {"scopes": Scope.choices, "typed": typed, "here": here, "status": 200}
    if request.method == "POST":
        context.update(made(request))
    return render(request, "tokens/list.html", {**context, "tokens": mine(request)}, status=int(str(context["status"])))


def made(request: HttpRequest) -> dict[str, object]:
    typed = {key: request.POST.get(key, "").strip() for key in ("name", "campaign", "days")}
    scopes = request.POST.getlist("scopes")
    try:
        days = whole(typed["days"], "The number of days")
        campaign = found(whole(typed["campaign"], "The campaign"))
        row, secret = ApiToken.issue(typed["name"], scopes, request.user, campaign, days)  # type: ignore[arg-type]
    except ValueError as error:
        return {"problem": str(error), "typed": {**typed, "scopes": scopes}, "status": 422}
    return {"made": row, "secret": secret}


def whole(text: str, what: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise ValueError(f"{what} is a whole number, or empty.")
    return int(text)


def found(pk: int | None) -> Campaign | None:
    campaign = Campaign.objects.filter(pk=pk).first() if pk else None
    if pk is not None and campaign is None:
        raise ValueError(f"There is no campaign {pk}.")
    return campaign


@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    get_object_or_404(mine(request), pk=pk).revoke()
    return redirect("tokens")
