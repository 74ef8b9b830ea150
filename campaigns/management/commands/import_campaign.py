from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import archive


class Command(BaseCommand):
    help = "Take in a campaign that `export_campaign` wrote, to be read here. A doubtful file is refused whole."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            with path.open("rb") as file:
                campaign = archive.restore(file, path.name, None)
        except (archive.ArchiveError, OSError) as error:
            if options["json"]:
                self.stdout.write(json.dumps({"error": str(error)}))
            raise CommandError(str(error), returncode=2) from None
        attempts = campaign.attempts.count()
        result = {"campaign": campaign.pk, "title": campaign.title, "attempts": attempts}
        text = f"Imported as campaign {campaign.pk}: {campaign.title}, {attempts:,} attempts."
        self.stdout.write(json.dumps(result) if options["json"] else text)
