"""From the kernel library to a measurement and back: which kernels a scenario takes, asked for, and concluded."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from autoresearch_web.celery import app
from campaigns import dispatch
from campaigns.actions import ActionError
from campaigns.harness.errors import ProblemError
from campaigns.harness.problem import load_problem
from campaigns.harness.report import Ratio
from campaigns.library import shelf
from campaigns.library.runtime.ranges import gain_near, outside
from campaigns.models import Attempt, EvaluatorHost, Kernel, Review, StackMeasurement, StackState, Verdict
from campaigns.models.evaluator_host import SILENT_AFTER
from profiling.silence import clock, is_silent

from . import catalogue
from .catalogue import Scenario
from .request import StackKernel, StackRequest, decode

log = logging.getLogger(__name__)
LIMIT_S = 1800.0
OFFERED = 3


def fitting(scenario: Scenario) -> tuple[list[tuple[Kernel, StackKernel]], list[dict[str, str]]]:
    """For each operator the approved kernel with the greatest gain at the scenario's axes, in the order of approval;
    and those that do not serve here, with the reason."""
    best: dict[str, tuple[float, Kernel, StackKernel]] = {}
    others: list[dict[str, str]] = []
    by_problem = {told.problem: operator for operator, told in scenario.operators.items()}
    for kernel in shelf.kernels(list(by_problem)):
        if not kernel.in_force():
            continue
        operator = by_problem[kernel.operator]
        stand_in, gain, why = stand_in_for(scenario, operator, kernel)
        if stand_in is None:
            others.append(told(kernel, operator, why))
            continue
        if operator in best:
            weaker = best[operator] if best[operator][0] < gain else (gain, kernel, stand_in)
            others.append(
                told(weaker[1], operator, f"another one is faster here ({max(gain, best[operator][0]):.2f}×)")
            )
        if operator not in best or best[operator][0] < gain:
            best[operator] = (gain, kernel, stand_in)
    chosen = sorted(best.values(), key=lambda found: found[1].review.created_at)
    return [(kernel, stand_in) for _, kernel, stand_in in chosen], others


def stand_in_for(scenario: Scenario, operator: str, kernel: Kernel) -> tuple[StackKernel | None, float, str]:
    """The kernel as the scenario takes it and its gain there, or why it does not serve."""
    problem = shelf.problem_of(kernel)
    entry, axes, dtype = shelf.entry(kernel, problem), scenario.axes_of(operator), scenario.workload.dtype
    if entry["device"] != scenario.workload.device:
        return None, 0.0, f"was judged on {kernel.hardware}"
    if set(axes) != set(problem.axes):
        return None, 0.0, f"its problem has the axes {', '.join(problem.axes)}"
    if dtype not in entry["tested"]:
        return None, 0.0, f"was not tested with {dtype}"
    if why := outside(entry, dtype, axes):
        return None, 0.0, why
    gain, at = gain_near(entry, dtype, axes)
    if gain <= 1:
        return None, gain, f"was not faster near here ({gain:.2f}× at {at})"
    attempt = kernel.review.attempt
    stand_in = StackKernel(
        id=kernel.review.sha256[:12],
        operator=operator,
        label=attempt.title or str(kernel),
        source=attempt.candidate(),
        axes=[axes[name] for name in problem.axes],
        speedup=nearest_ratio(kernel, entry, gain),
    )
    return stand_in, gain, ""


def nearest_ratio(kernel: Kernel, entry: dict[str, Any], gain: float) -> Ratio | None:
    """The interval of the measurement that ``gain`` is."""
    for row in kernel.review.attempt.measurements.all():
        if row.speedup == gain and row.speedup_lo is not None and row.speedup_hi is not None:
            return Ratio(value=gain, lo=row.speedup_lo, hi=row.speedup_hi)
    return None


def told(kernel: Kernel, operator: str, why: str) -> dict[str, str]:
    label = kernel.review.attempt.title or str(kernel)
    return {"kernel": kernel.review.sha256[:12], "operator": operator, "label": label, "why": why}


def request_for(scenario: Scenario) -> tuple[StackRequest, list[Kernel], list[dict[str, str]]]:
    chosen, others = fitting(scenario)
    stand_ins = [stand_in for _, stand_in in chosen]
    request = StackRequest(
        scenario=scenario.name, files=scenario.problem.files, kernels=stand_ins, time_limit_s=LIMIT_S
    )
    return request, [kernel for kernel, _ in chosen], others


def ask(name: str, person: User | None) -> StackMeasurement:
    """Send a measurement to an evaluator. One that still waits for the same scenario gives way to it."""
    scenario = measurable(name)
    request, kernels, others = request_for(scenario)
    return asked(scenario, request, kernels, others, person, [])


def asked(
    scenario: Scenario,
    request: StackRequest,
    kernels: list[Kernel],
    others: list[dict[str, str]],
    person: User | None,
    tried: list[Attempt],
) -> StackMeasurement:
    with transaction.atomic():
        stop_waiting(scenario.name, "a newer measurement was asked for")
        row = StackMeasurement.objects.create(
            scenario=scenario.name,
            hardware=hardware_for(scenario),
            ticket=str(uuid.uuid4()),
            by=person,
            not_here=others,
        )
        row.kernels.set(kernels)
        row.tried.set(tried)
        body = msgspec.to_builtins(request)
        queue = f"gpu.{row.hardware}"
        transaction.on_commit(lambda: send(row.ticket, body, queue))
    return row


def offered(scenario: Scenario) -> list[tuple[Attempt, StackKernel]]:
    """Candidates that were right and not told apart from their incumbent, as the scenario takes them: of each operator
    the ``OFFERED`` that came out best. One of each may be tried together with the others."""
    by_problem = {told.problem: operator for operator, told in scenario.operators.items()}
    found: list[tuple[Attempt, StackKernel]] = []
    attempts = Attempt.objects.filter(
        verdict=Verdict.STACKED, campaign__problem__in=by_problem, campaign__imported_from__isnull=True
    )
    on_cpu = Q(campaign__hardware="cpu")
    attempts = attempts.filter(on_cpu if scenario.workload.device == "cpu" else ~on_cpu)
    for attempt in attempts.select_related("campaign").prefetch_related("measurements").order_by("-over_incumbent"):
        operator = by_problem[attempt.campaign.problem]
        if sum(kernel.operator == operator for _, kernel in found) < OFFERED:
            stand_in = tried_in(scenario, operator, attempt)
            if stand_in is not None:
                found.append((attempt, stand_in))
    return found


def tried_in(scenario: Scenario, operator: str, attempt: Attempt) -> StackKernel | None:
    report = attempt.parsed_report()
    problem, axes, dtype = (
        load_problem(attempt.campaign.problem_files),
        scenario.axes_of(operator),
        scenario.workload.dtype,
    )
    if report is None or set(axes) != set(problem.axes):
        return None
    entry = shelf.measured(attempt, problem, report.host.kind)
    if entry["device"] != scenario.workload.device or dtype not in entry["tested"] or outside(entry, dtype, axes):
        return None
    return StackKernel(
        id=attempt.trial_id,
        operator=operator,
        label=attempt.title or str(attempt),
        source=attempt.candidate(),
        axes=[axes[name] for name in problem.axes],
    )


def try_together(name: str, chosen: list[int], person: User | None) -> StackMeasurement:
    """Measure offered candidates together, on top of the approved kernels. Raises ``ActionError``."""
    scenario = measurable(name)
    wanted = [(attempt, kernel) for attempt, kernel in offered(scenario) if attempt.pk in set(chosen)]
    operators = [kernel.operator for _, kernel in wanted]
    if len(wanted) < len(set(chosen)):
        raise ActionError("A candidate that you chose is not offered any more. Load the page again.")
    if len(wanted) < 2 or len(set(operators)) < len(operators):
        raise ActionError("Choose two or more, each for another operator: what is tried is that they add up.")
    request, kernels, others = request_for(scenario)
    tried = [kernel for _, kernel in wanted]
    request = msgspec.structs.replace(
        request, kernels=[*request.kernels, *tried], tried=tuple(kernel.id for kernel in tried)
    )
    return asked(scenario, request, kernels, others, person, [attempt for attempt, _ in wanted])


def measurable(name: str) -> Scenario:
    """The scenario, when a host that can measure it is there."""
    scenario = catalogue.find(name)
    if not hardware_for(scenario):
        raise ActionError(f"{name} runs on a GPU, and no GPU host is there now: see Hosts. Or choose tiny.")
    return scenario


def hardware_for(scenario: Scenario) -> str:
    """The kind whose queue takes it: ``cpu``, or that of a GPU host that was heard lately; empty where there is none."""
    if scenario.workload.device == "cpu":
        return "cpu"
    alive = EvaluatorHost.objects.filter(last_seen__gt=timezone.now() - SILENT_AFTER).exclude(queue="gpu.cpu")
    host = alive.order_by("-last_seen").first()
    return host.queue.removeprefix("gpu.") if host else ""


def send(ticket: str, body: dict[str, Any], queue: str) -> None:
    app.send_task("measure_stack", [ticket, body], queue=queue, task_id=ticket)


def stop_waiting(name: str, reason: str) -> int:
    waiting = list(StackMeasurement.objects.filter(scenario=name, state=StackState.WAITING))
    for row in waiting:
        if end(row.ticket, StackState.STOPPED, error=reason):
            transaction.on_commit(lambda ticket=row.ticket: dispatch.cancel(ticket))  # type: ignore[misc]
    return len(waiting)


def end(ticket: str, state: StackState, **fields: str) -> bool:
    """Once: a second word about the same ticket changes nothing."""
    waiting = StackMeasurement.objects.filter(ticket=ticket, state=StackState.WAITING)
    return waiting.update(state=state, ended_at=timezone.now(), **fields) == 1


def conclude(ticket: str) -> None:
    """Take the result that lies at the broker under the ticket: a report, or why there is none."""
    raw = dispatch.report_of(ticket)
    if raw is None:
        return
    try:
        answer = msgspec.json.decode(raw, type=dict[str, Any])
        if "error" in answer:
            end(ticket, StackState.FAILED, error=str(answer["error"])[:5000])
        else:
            report = decode(msgspec.json.encode(answer["report"]))
            end(ticket, StackState.DONE, report=msgspec.json.encode(report).decode())
    except (msgspec.MsgspecError, KeyError) as error:
        end(ticket, StackState.FAILED, error=f"the evaluator's report could not be read: {error}")
    dispatch.forget(ticket)


def watch() -> None:
    """Take in what was reported, and ask again for what was lost with its evaluator or with the broker, a few times."""
    for row in StackMeasurement.objects.filter(state=StackState.WAITING):
        if dispatch.report_of(row.ticket):
            conclude(row.ticket)
        elif is_silent(row.created_at, settings.LOST_AFTER_S) and not clock.was_set() and not under_way(row):
            look_after(row)


def under_way(row: StackMeasurement) -> bool:
    return bool(dispatch.alive(row.ticket)) or dispatch.is_waiting(row.ticket, f"gpu.{row.hardware}")


LOST = "the evaluator that measured it was lost"


def look_after(row: StackMeasurement) -> None:
    if dispatch.report_of(row.ticket):  # it came between the two looks
        conclude(row.ticket)
        return
    before = StackMeasurement.objects.filter(scenario=row.scenario, id__lt=row.pk).values_list("error", flat=True)
    again = list(before[: dispatch.MAX_TRIES - 1]) != [LOST] * (dispatch.MAX_TRIES - 1)
    if not end(row.ticket, StackState.FAILED, error=LOST if again else f"{LOST}, {dispatch.MAX_TRIES} times in a row"):
        return
    dispatch.cancel(row.ticket)
    tried = list(row.tried.values_list("pk", flat=True))
    log.warning("the measurement of %s was lost with its evaluator%s", row.scenario, "; asking again" if again else "")
    try:
        if again and tried:
            try_together(row.scenario, tried, row.by)
        elif again:
            ask(row.scenario, row.by)
    except (ActionError, ProblemError, OperationalError, RedisError, ConnectionError) as error:
        log.warning("scenario %s is not measured again: %s", row.scenario, error)


def after_approval(review: Review) -> None:
    """Measure again the scenarios that somebody has measured before and that have this operator. The approval stands,
    whatever comes of it."""
    measured = StackMeasurement.objects.values_list("scenario", flat=True).distinct().order_by("scenario")
    for name in list(measured):
        try:
            operators = catalogue.find(name).operators.values()
            if any(told.problem == review.attempt.campaign.problem for told in operators):
                ask(name, review.reviewer)
        except (ActionError, ProblemError, OperationalError, RedisError, ConnectionError) as error:
            log.warning("scenario %s is not measured again: %s", name, error)
