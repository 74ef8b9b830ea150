from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser, call_command

from autoresearch_web.local.stack import Failed, Stack, running
from campaigns import actions
from campaigns.models import Attempt, Campaign, Gate, State


class Command(BaseCommand):
    help = (
        "Run a campaign and wait for its end. Starts broker and workers itself when nothing runs for this data folder."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--problem", required=True)
        parser.add_argument("--idea", required=True, help="what to do instead, in a sentence")
        parser.add_argument("--agent", default="tuner", help="tuner, replay, …")
        parser.add_argument("--replay", metavar="DIR", help="the folder of candidates, for --agent replay")
        parser.add_argument("--attempts", type=int, default=40)
        parser.add_argument("--seconds", type=int, help="time budget")
        parser.add_argument("--target", type=float, help="stop at this speed-up over the baseline")
        parser.add_argument("--model", help="the model's name, for --agent anthropic|openai")
        parser.add_argument("--endpoint", help="a named endpoint, for --agent anthropic|openai (docs/agents.md)")
        parser.add_argument(
            "--option", action="append", default=[], metavar="KEY=JSON", help="of the agent; repeatable"
        )
        parser.add_argument("--tokens", type=int, help="budget in tokens of models")
        parser.add_argument("--usd", type=float, help="budget in dollars of models")
        parser.add_argument("--parallel", type=int, default=1, help="evaluations at once")
        parser.add_argument("--ahead", type=int, help="proposals under way beyond --parallel")
        parser.add_argument("--policy", default="turns", help="turns, or bandit: ideas that pay get more attempts")
        parser.add_argument("--backend")
        parser.add_argument("--baseline")
        parser.add_argument("--hardware", default="cpu")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        begun = time.monotonic()
        call_command("migrate", verbosity=0, interactive=False)
        try:
            campaign = actions.create(new_campaign(options), person=None)
        except actions.ActionError as error:
            self.fail(str(error), options["json"])
        try:
            with nullcontext() if running() is not None else Stack(web=False) as stack:
                actions.start(campaign, person=None)
                wait(campaign, stack)
        except Failed as error:
            self.fail(str(error), options["json"])
        result = summary(campaign, time.monotonic() - begun)
        self.stdout.write(json.dumps(result) if options["json"] else table(campaign, result))
        if campaign.state == State.FAILED:
            sys.exit(1)

    def fail(self, message: str, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"error": message}))
        raise CommandError(message, returncode=2)


def new_campaign(options: dict[str, Any]) -> actions.NewCampaign:
    if options["agent"] == "replay" and not options["replay"]:
        raise actions.ActionError("--agent replay wants --replay DIR, the folder of candidates.")
    return actions.NewCampaign(
        problem=options["problem"],
        idea=options["idea"],
        agent=options["agent"],
        agent_options=agent_options(options),
        budget_tokens=options["tokens"],
        budget_usd=options["usd"],
        parallel=options["parallel"],
        proposals_ahead=options["ahead"],
        policy=options["policy"],
        any_directory=True,
        backend=options["backend"],
        baseline=options["baseline"],
        hardware=options["hardware"],
        gate=Gate.AUTO,
        budget_attempts=options["attempts"],
        budget_seconds=options["seconds"],
        target_speedup=options["target"],
    )


def agent_options(options: dict[str, Any]) -> dict[str, Any]:
    """``--option duplicates='"measure"'`` and the like; a value that is no JSON is taken as text."""
    found: dict[str, Any] = {"directory": options["replay"]} if options["replay"] else {}
    found |= {key: options[key] for key in ("model", "endpoint") if options[key]}
    for pair in options["option"]:
        key, equals, value = pair.partition("=")
        if not equals:
            raise actions.ActionError(f"--option {pair!r} is not KEY=VALUE.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def wait(campaign: Campaign, stack: Stack | None) -> None:
    """Until the campaign ends; says on stderr what is judged meanwhile, and keeps our own services alive."""
    said: set[int] = set()
    while True:
        campaign.refresh_from_db()
        for attempt in campaign.attempts.exclude(verdict="").exclude(number__in=said):
            said.add(attempt.number)
            sys.stderr.write(f"{attempt.mark} {attempt.number:>4} {line(attempt)}\n")
        if campaign.is_ended:
            return
        if stack:
            stack.check()
        time.sleep(0.2)


def line(attempt: Attempt) -> str:
    gain = f"{attempt.speedup:.3f}×" if attempt.speedup is not None else "not measured"
    return f"{attempt.get_verdict_display():<14} {gain:>12}  {attempt.title}  ({attempt.reason})"


def summary(campaign: Campaign, seconds: float) -> dict[str, Any]:
    """The document of ``--json``; its keys are kept stable."""
    best = campaign.best()
    return {
        "campaign": campaign.pk,
        "state": campaign.state,
        "state_reason": campaign.state_reason,
        "attempts": [row(attempt) for attempt in campaign.attempts.exclude(verdict="").prefetch_related("flags")],
        "best": {"attempt": best.number, "speedup": best.speedup, "band": best.band} if best else None,
        "seconds": round(seconds, 2),
    }


def row(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "verdict": attempt.verdict,
        "speedup": attempt.speedup,
        "band": attempt.band,
        "flags": [{"rule": f.rule, "severity": f.severity, "evidence": f.evidence} for f in attempt.flags.all()],
        "title": attempt.title,
        "reason": attempt.reason,
        "parameters": attempt.parameters,
    }


def table(campaign: Campaign, result: dict[str, Any]) -> str:
    best = result["best"]
    found = f"best {best['speedup']:.3f}× (attempt {best['attempt']})" if best else "nothing kept"
    tally = ", ".join(f"{n} {verdict}" for verdict, n in sorted(campaign.tally().items()))
    said = [
        f"Campaign {campaign.pk} {campaign.state}: {campaign.state_reason}",
        found,
        tally,
        f"{result['seconds']:.0f} s",
    ]
    return ". ".join(filter(None, said)) + "."
