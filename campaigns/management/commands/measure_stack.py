from __future__ import annotations

import json
from typing import Any

import msgspec
from django.core.management import BaseCommand, CommandError, CommandParser

from campaigns.harness.errors import Infrastructure, ProblemError
from campaigns.scenarios import catalogue, stacking
from campaigns.scenarios.measure import measure
from campaigns.scenarios.request import StackReport


class Command(BaseCommand):
    help = "Measure a scenario's step with the approved kernels, here and now, and print the waterfall."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("scenario", nargs="?", default="tiny", help="tiny, toy_deepseek, …")
        parser.add_argument(
            "--base", action="append", help="eager or compile; by default the faster of both is the baseline"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            request, _, others = stacking.request_for(catalogue.find(options["scenario"]))
            if options["base"]:
                request = msgspec.structs.replace(request, bases=tuple(options["base"]))
            said = (lambda stage, detail: None) if options["json"] else self.say
            report = measure(request, said)
        except (ProblemError, Infrastructure) as error:
            raise CommandError(str(error), returncode=2) from None
        result = {"report": msgspec.to_builtins(report), "not_here": others}
        self.stdout.write(json.dumps(result) if options["json"] else table(report, others))

    def say(self, stage: str, detail: str) -> None:
        self.stderr.write(f"  {stage}: {detail}")


def table(report: StackReport, others: list[dict[str, str]]) -> str:
    bases = ", ".join(f"{b.name} {b.time_us:,.0f} µs" if b.time_us else f"{b.name}: {b.detail}" for b in report.bases)
    lines = [f"{report.scenario} on {report.host.hardware}. Without kernels: {bases}. True baseline: {report.base}."]
    lines.append(f"{report.base_us:>12,.0f} µs  {report.base}")
    for stage in report.stages:
        gain = stage.gain
        ceiling = f"ceiling {stage.ceiling:.2f}×, " if stage.ceiling else ""
        lines.append(
            f"{stage.time_us:>12,.0f} µs  + {stage.label}: {gain.value:.3f}× ({gain.lo:.3f} to {gain.hi:.3f}), "
            f"{stage.share.value:.0%} of the step, {ceiling}limit {stage.limit:.2f}×; {stage.over_base.value:.3f}× in all"
            + (f"\n              ⚑ {stage.flag}" if stage.flag else "")
        )
    if report.floor_us:
        lines.append(f"{report.floor_us:>12,.0f} µs  what this machine needs to read the bytes")
    left_out = [f"{o.label}: {o.why}" for o in report.left_out] + [f"{o['label']}: {o['why']}" for o in others]
    lines += [f"              not in it: {text}" for text in left_out]
    return "\n".join([*lines, *([f"REFUSED: {report.refused}"] if report.refused else [])])
