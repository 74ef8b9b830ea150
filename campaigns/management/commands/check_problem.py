from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns import catalog
from campaigns.harness.errors import Infrastructure, ProblemError
from campaigns.harness.problem import read_folder
from campaigns.harness.problem_check import ProblemReport, check_problem


class Command(BaseCommand):
    help = (
        "Ask of a problem folder what would make its verdicts worthless, and say what to do. The exit code is 0 for a problem "
        "that is taken, 2 for one that is refused, 1 when this machine could not check."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("problem", metavar="DIR", help="the path of a problem folder, or a problem's name")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            given = Path(options["problem"])
            files = read_folder(given if given.is_dir() else catalog.find(options["problem"]))
            report = check_problem(files, progress=self.say)
        except ProblemError as error:
            raise CommandError(str(error), returncode=2) from error
        except Infrastructure as error:
            raise CommandError(f"not checked: {error}", returncode=1) from error
        document = {**msgspec.to_builtins(report), "passed": report.passed}
        self.stdout.write(msgspec.json.encode(document).decode() if options["json"] else text(report))
        if not report.passed:
            sys.exit(2)

    def say(self, step: str, detail: str) -> None:
        self.stderr.write(f"{step}: {detail}")


def text(report: ProblemReport) -> str:
    """What a person reads at a terminal."""
    name = report.name or "the folder"
    lines = [f"{name}: taken" if report.passed else f"{name}: refused, for {len(report.reasons)} reasons"]
    for reason in report.reasons:
        where = f" [{', '.join(reason.workloads)}]" if reason.workloads else ""
        lines += [f"  ✕ {reason.rule}: {reason.what}{where}", f"    → {reason.do}"]
    lines += [f"  {what}: {words}" for what, words in report.kernels.items()]
    lines += [f"  · {note}" for note in report.notes]
    lines += [f"  not tried: {name}: {why}" for name, why in report.left_out.items()]
    lines.append(f"  {len(report.checked)} workloads checked in {report.seconds:.0f} s")
    return "\n".join(lines)
