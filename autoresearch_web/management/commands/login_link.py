from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandParser

from autoresearch_web import access
from autoresearch_web.local.stack import running


class Command(BaseCommand):
    help = "Print a link that signs one person in, once, within a day. The account is made when it is not there."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", default="owner")

    def handle(self, *args: Any, **options: Any) -> None:
        base = (running() or {}).get("url") or "http://localhost:8000"
        self.stdout.write(f"{base}/login?token={access.one_time_token(options['user'])}")
