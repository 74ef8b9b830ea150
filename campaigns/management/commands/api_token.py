from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from campaigns.models import ApiToken, Campaign, Scope

HERE = "owner"
"""Whom the link of ``manage.py up`` signs in: the page Agents then lists the token, and can revoke it."""


class Command(BaseCommand):
    help = "Make, list and revoke the tokens with which agents use the REST API and the MCP server."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a token and print it, this once")
        create.add_argument("name", help="what will use it")
        create.add_argument("--scopes", default="read,submit", help=f"some of {','.join(Scope.values)}")
        create.add_argument(
            "--user", help=f"whose token it is; its acts carry that name (without it {HERE}, where that account is)"
        )
        create.add_argument("--campaign", type=int, help="the only campaign that it reaches")
        create.add_argument("--days", type=int, help="how long it lasts")
        verbs.add_parser("list", help="all tokens, without their secrets")
        revoke = verbs.add_parser("revoke", help="close a token at once")
        revoke.add_argument("token", help="its name, number, or how it begins")

    def handle(self, *args: Any, **options: Any) -> None:
        {"create": self.create, "list": self.list, "revoke": self.revoke}[options["verb"]](options)

    def create(self, options: dict[str, Any]) -> None:
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        try:
            row, secret = ApiToken.issue(
                options["name"], scopes, owner(options["user"]), campaign(options["campaign"]), options["days"]
            )
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"Token {row.pk} ({', '.join(row.scopes)}). It is shown this once:")
        self.stdout.write(secret)

    def list(self, options: dict[str, Any]) -> None:
        for token in ApiToken.objects.select_related("owner"):
            used = f"{token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never used"
            where = f"campaign {token.campaign_id}" if token.campaign_id else "all campaigns"
            words = (
                token.pk,
                f"{token.prefix}…",
                token.state(),
                ",".join(token.scopes),
                where,
                used,
                token.owner or "—",
                token.name,
            )
            self.stdout.write("  ".join(str(word) for word in words))

    def revoke(self, options: dict[str, Any]) -> None:
        text = options["token"]
        wanted = Q(name=text) | Q(prefix=text[:12]) if not text.isdigit() else Q(pk=int(text)) | Q(name=text)
        found = list(ApiToken.objects.filter(wanted, revoked_at=None))
        if len(found) != 1:
            many = f"{len(found)} tokens are called {text!r}; take the number from `api_token list`."
            raise CommandError(many if found else f"No living token {text!r}. `api_token list` lists them.")
        found[0].revoke()
        self.stdout.write(f"Revoked {found[0]}.")


def owner(name: str | None) -> User | None:
    found = get_user_model().objects.filter(username=name or HERE).first()
    if found is None and name is not None:
        raise ValueError(f"There is no user {name!r}.")
    return found


def campaign(pk: int | None) -> Campaign | None:
    found = Campaign.objects.filter(pk=pk).first() if pk is not None else None
    if pk is not None and found is None:
        raise ValueError(f"There is no campaign {pk}.")
    return found
