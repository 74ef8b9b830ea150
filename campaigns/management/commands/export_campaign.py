from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import archive, captures
from campaigns.models import AttemptProfile, Campaign


class Command(BaseCommand):
    help = "Write a campaign with everything that belongs to it into one file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument("file", type=Path)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            campaign = Campaign.objects.get(pk=options["id"])
            sha256 = write(campaign, options["file"])
        except Campaign.DoesNotExist:
            raise CommandError(f"There is no campaign {options['id']}.", returncode=2) from None
        except (archive.ArchiveError, OSError) as error:
            raise CommandError(str(error), returncode=2) from None
        if taken := AttemptProfile.objects.filter(**captures.OPEN, attempt__campaign=campaign).count():
            self.stderr.write(
                f"Not in it: {taken} profiles that a host is still taking. Export again once they are there."
            )
        size = options["file"].stat().st_size
        result = {"campaign": campaign.pk, "file": str(options["file"]), "bytes": size, "sha256": sha256}
        text = f"Campaign {campaign.pk} is in {options['file']} ({size:,} bytes, sha256 {sha256})."
        self.stdout.write(json.dumps(result) if options["json"] else text)


def write(campaign: Campaign, path: Path) -> str:
    """Beside its place first, so that a failure leaves neither half a file nor harms the one that was there."""
    with NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            sha256 = archive.export(campaign, file)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    return sha256
