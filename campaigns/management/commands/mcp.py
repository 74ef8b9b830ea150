from __future__ import annotations

import asyncio
import os
from typing import Any

from channels.db import database_sync_to_async
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from mcp.server.mcpserver import Context

from campaigns.api.caller import ApiError, Caller, caller_of
from campaigns.models import Scope


class Command(BaseCommand):
    requires_system_checks: list[str] = []
    """An agent starts this and waits for it."""
    help = "MCP server on stdin and stdout, for an agent on this machine. With AUTORESEARCH_TOKEN set, its scopes hold."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--scopes", default="read,submit", help="without a token: what the agent may do (read,submit,create)"
        )
        parser.add_argument("--campaign", type=int, help="without a token: the only campaign that it reaches")

    def handle(self, *args: Any, **options: Any) -> None:
        from campaigns.mcp.server import build

        call_command("migrate", verbosity=0, interactive=False)
        secret = os.environ.pop("AUTORESEARCH_TOKEN", "")
        local = person_here(options["scopes"], options["campaign"])
        if secret:
            try:
                caller_of(secret)
            except ApiError as error:
                raise CommandError(f"AUTORESEARCH_TOKEN: {error}") from None

        async def admit(ctx: Context[Any, Any]) -> Caller:
            """Asked at every call: a token that is revoked closes at once."""
            return await database_sync_to_async(caller_of, thread_sensitive=False)(secret) if secret else local

        asyncio.run(build(admit).run_stdio_async())


def person_here(scopes: str, campaign: int | None) -> Caller:
    """Whoever has a shell here could make a token of any scope; the scopes given keep the agent in bounds."""
    wanted = tuple(scope.strip() for scope in scopes.split(",") if scope.strip())
    unknown = [scope for scope in wanted if scope not in Scope.values]
    if unknown or not wanted:
        raise CommandError(f"--scopes: some of {', '.join(Scope.values)}, with commas between.")
    return Caller(name="local MCP client", key="local", scopes=wanted, campaign=campaign)
