from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import redteam
from campaigns.harness.errors import CandidateError, ProblemError


class Command(BaseCommand):
    help = (
        "Run every cheat in the tests, and its honest twins, through the harness. The exit code is 0 when every cheat was caught "
        "and every honest one passed clean, 1 when not, 2 when the red team is not at hand."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", help="only these (a file's name without its ending)")
        parser.add_argument("--gpu", action="store_true", help="only those that need an NVIDIA GPU")
        parser.add_argument("--only", choices=("cheats", "honest"))
        parser.add_argument("--seconds", type=float, metavar="N", help="begin no further one after so long")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            entries = [e for e in self.chosen(options["names"]) if e.needs == "gpu" or not options["gpu"]]
            if options["only"]:
                entries = [e for e in entries if e.honest == (options["only"] == "honest")]
            ready = [e for e in entries if not e.lacks()]
            rows = []
            for row in redteam.run(ready, self.say, options["seconds"]):
                rows.append(row)
                self.stderr.write(f"  {row.verdict} {row.by} in {row.seconds:.1f} s")
            done = {row.entry.path for row in rows}
            skipped = [e for e in entries if e.path not in done]
        except (ProblemError, CandidateError) as error:
            raise CommandError(str(error), returncode=2) from error
        document = redteam.document(rows, skipped)
        self.stdout.write(
            json.dumps(document, ensure_ascii=False) if options["json"] else text(rows, skipped, document)
        )
        if not all(row.good for row in rows):
            sys.exit(1)

    def say(self, entry: redteam.Entry) -> None:
        self.stderr.write(f"{'honest' if entry.honest else 'cheat'} {entry.name}")

    def chosen(self, names: list[str]) -> list[redteam.Entry]:
        entries = redteam.entries()
        if unknown := set(names) - {e.name for e in entries}:
            raise ProblemError(f"no candidate {', '.join(sorted(unknown))} in the tables")
        return [e for e in entries if not names or e.name in names]


def text(rows: list[redteam.Row], skipped: list[redteam.Entry], document: dict[str, Any]) -> str:
    """What a person reads at a terminal."""
    lines = []
    for honest, title in ((False, "Cheats"), (True, "Honest")):
        lines.append(title)
        for row in [r for r in rows if r.entry.honest == honest]:
            mark = "✓" if row.good else "✕"
            lines.append(
                f"  {mark} {row.entry.name:<26} {row.verdict:<14} {row.by or '–':<20} {row.seconds:>5.1f} s  {row.entry.kind}"
            )
            if not row.good:
                lines.append(f"      {row.reason}")
    lines += [f"  – {entry.name:<26} skipped: {entry.lacks() or redteam.OUT_OF_TIME}" for entry in skipped]
    cheats, honest_rows = len(document["cheats"]), len(document["honest"])
    lines.append(
        f"{document['caught']} of {cheats} cheats caught, {document['clean']} of {honest_rows} honest ones clean, "
        f"{len(skipped)} skipped, in {document['seconds']:.0f} s"
    )
    return "\n".join(lines)
