from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management import BaseCommand, CommandParser

from autoresearch_web.local import checkup


class Command(BaseCommand):
    help = "Tell what is there, what is missing, and what to do about it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        found = checkup.examine()
        if options["json"]:
            self.stdout.write(json.dumps([check.as_dict() for check in found]))
        else:
            for check in found:
                self.stdout.write(check.line())
        if any(check.state == "missing" for check in found):
            sys.exit(1)
