from __future__ import annotations

import os
import signal
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from autoresearch_web import access
from autoresearch_web.local.broker import NoBroker
from autoresearch_web.local.service import prefixed
from autoresearch_web.local.stack import AlreadyRunning, Failed, Stack, state_path


class Command(BaseCommand):
    help = "Start everything on this machine: broker, workers, web. Ctrl-C ends it all."
    asked_to_end = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 to be reached from other machines")
        parser.add_argument("--user", default="owner", help="whom the printed link signs in")
        parser.add_argument("--demo", action="store_true", help="import the demo profile and run the demo campaign")

    def handle(self, *args: Any, **options: Any) -> None:
        stack = Stack(port=options["port"], host=options["host"])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.end(stack))
        try:
            with stack:
                self.greet(stack, options)
                stack.keep()
        except AlreadyRunning as error:
            url = error.args[0]
            if not url:
                self.stdout.write(
                    "It is being started for this data folder by another `manage.py up`, which prints the link."
                )
                return
            link = f"{url}/login?token={access.one_time_token(options['user'])}"
            self.stdout.write(f"It runs already for this data folder. Sign in (works once):\n\n    {link}\n")
        except (Failed, NoBroker) as error:
            if not self.asked_to_end:
                raise CommandError(str(error)) from error

    def greet(self, stack: Stack, options: dict[str, Any]) -> None:
        where = "/"
        if options["demo"]:
            from campaigns.demo import begin

            where = begin(options["user"])
        token = access.one_time_token(options["user"])
        link = f"{stack.url}/login?token={token}" + (f"&next={where}" if where != "/" else "")
        self.stdout.write(
            f"\nAutoresearch Web is up. Open this link (it signs in {options['user']}, once):\n\n    {link}\n"
        )
        self.stdout.flush()

    def end(self, stack: Stack) -> None:
        if self.asked_to_end:  # a second time: at once; the guard ends what is left
            prefixed("up", "ended at once")
            state_path().unlink(missing_ok=True)
            os._exit(1)
        self.asked_to_end = stack.ending = True
        prefixed("up", "ending …")
        raise SystemExit(0)
