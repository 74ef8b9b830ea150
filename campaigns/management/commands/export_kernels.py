from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import library
from campaigns.library.export import FORMS


class Command(BaseCommand):
    help = "Write the approved kernels as a Python package (a wheel), as an archive of its sources, or as a patch."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="where the file is written")
        parser.add_argument("--form", choices=FORMS, default="package")
        parser.add_argument("--operator", action="append", help="only this one; may be given several times")
        parser.add_argument("--name", default="approved_kernels", help="the package's name")
        parser.add_argument(
            "--fallback", action="append", default=[], metavar="OPERATOR=WHAT",
            help="what serves elsewhere: a baseline of the problem, or package.module:function",
        )  # fmt: skip
        parser.add_argument("--prefix", default="", help="for a patch: the folder in your repository")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            options["folder"].mkdir(parents=True, exist_ok=True)  # before it is noted that something was handed out
            fallbacks = dict(pair(text) for text in options["fallback"])
            made = library.export(
                options["form"], None, operators=options["operator"], name=options["name"], fallbacks=fallbacks,
                prefix=options["prefix"],
            )  # fmt: skip
            path = options["folder"] / made.filename
            path.write_bytes(made.data)
        except (library.ExportError, OSError) as error:
            raise CommandError(str(error), returncode=2) from None
        kernels = [str(k) for k in made.note.kernels.all()]
        result = {"file": str(path), "sha256": made.note.sha256, "kernels": kernels}
        text = f"{path}: {', '.join(kernels)} (sha256 {made.note.sha256})"
        self.stdout.write(json.dumps(result) if options["json"] else text)


def pair(text: str) -> tuple[str, str]:
    operator, separator, what = text.partition("=")
    if not separator or not what:
        raise library.ExportError(f"--fallback {text!r}: write it as OPERATOR=WHAT.")
    return operator, what
