from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandParser, call_command

from profiling import comparing
from profiling.compare import NoSuchRange
from profiling.importers.limits import Refused
from profiling.management.commands.import_profile import Command as ImportProfile
from profiling.models import Profile
from profiling.opened import Gone
from profiling.words import duration

MAX_LINES = 15


class Command(BaseCommand):
    help = (
        "Hold two captures, or two ranges of one, against each other. Exit code 2 for a file or range that cannot be "
        "used; two that cannot be compared are an answer, with reasons and without a ratio."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("a", metavar="A", help="a file, or the id of an imported profile")
        parser.add_argument("b", metavar="B")
        parser.add_argument(
            "--range",
            action="append",
            default=[],
            metavar="TEXT",
            help="an NVTX range's name or a part of it, or ns:FROM-TO; once for both, or twice: first for A, then for B",
        )
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        texts = options["range"]
        try:
            if len(texts) > 2:
                raise Refused("--range stands more than twice", "Give it once for both sides, or once for each.")
            a, b = (self.profile(options[side]) for side in ("a", "b"))
            result = comparing.compared(a, b, texts[0] if texts else "", texts[-1] if texts else "")
        except Refused as refused:
            self.refuse(refused.error, refused.hint, options["json"])
        except (NoSuchRange, Gone) as error:
            self.refuse(str(error), "Give a range that is there, or none for the whole capture.", options["json"])
        else:
            self.stdout.write(json.dumps(result) if options["json"] else as_text(result))

    def profile(self, text: str) -> Profile:
        """An imported profile by id, or a file, which is imported unless it already is."""
        call_command("migrate", verbosity=0, interactive=False)
        try:
            if found := Profile.objects.filter(pk=text, state="ready").first():
                return found
        except (ValidationError, ValueError):
            pass  # no id: a path
        return ImportProfile().import_file(Path(text))

    def refuse(self, error: str, hint: str, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"error": error, "hint": hint}))
        else:
            self.stderr.write(f"Not compared: {error}\n{hint}")
        sys.exit(2)


def as_text(result: dict[str, Any]) -> str:
    lines = [result["conclusion"], ""]
    for letter in ("a", "b"):
        side = result[letter]
        lines.append(
            f"{letter.upper()}  {side['name']}  {side['range'] or 'whole capture'}: {side['occurrences']} × "
            f"{duration(side['time_ns'])}, busy {duration(side['busy_ns'])}, {side['kernels']:,.0f} kernels"
        )
    lines += ["", f"{'calls A':>9} {'calls B':>9} {'total A':>10} {'total B':>10}  {'':<5} kernel"]
    lines += [
        f"{k['a']['calls']:>9,.5g} {k['b']['calls']:>9,.5g} {duration(k['a']['total_ns']):>10} "
        f"{duration(k['b']['total_ns']):>10}  {k['change']:<5} {k['name'][:90]}"
        for k in result["kernels"][:MAX_LINES]
    ]
    return "\n".join([*lines, "", *(f"{note}." for note in result["notes"])])
