"""The evaluator's task that measures a stack. Like the evaluator itself it knows the broker and no database."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from campaigns.harness.errors import CandidateFailure, Infrastructure, ProblemError, Stopped
from campaigns.harness.sandbox import die_with_parent
from campaigns.harness.worker import KEEP_S, Sign, app, broker

from .measure import measure
from .request import StackRequest

log = logging.getLogger(__name__)


@app.task(name="measure_stack")
def measure_ticket(ticket: str, request: dict[str, Any]) -> None:
    """Measure once and leave ``{"report": …}`` or ``{"error": …}`` under the ticket."""
    die_with_parent()
    sign = Sign(ticket)
    if broker().exists(f"evaluation:{ticket}:cancelled"):
        return
    if not broker().exists(f"evaluation:{ticket}:report"):
        with sign.shown():
            try:
                found = measure(msgspec.convert(request, StackRequest), sign.progress, sign.cancelled.is_set)
                answer = {"report": msgspec.to_builtins(found)}
            except Stopped:
                return
            except (Infrastructure, ProblemError, CandidateFailure, msgspec.ValidationError) as error:
                log.warning("no measurement of the stack: %s", error)
                answer = {"error": str(error)}
            broker().set(f"evaluation:{ticket}:report", msgspec.json.encode(answer), ex=KEEP_S)
    app.send_task("campaigns.tasks.conclude_stack", [ticket], queue="loop")
