"""Profile a candidate that was kept, and the baseline beside it, each in a sandbox of its own. Decides nothing.

It runs after the verdict, as a task of its own: it cannot change or delay one, and what fails here is said and left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator

import msgspec

from profiling.capture import MAX_TRACE_BYTES, installed

from . import backends
from .backends import Built
from .bench import BASELINE_LIMITS
from .errors import CandidateError, CandidateFailure, Infrastructure, ProblemError
from .evaluator import on_a_warm_bench
from .gpu import tooling
from .gpu.work import nbytes
from .hosts import host_name
from .problem import Workload
from .request import CandidateSource, EvaluationRequest
from .runner import Runner
from .stages.base import CANDIDATE_LIMITS, Evaluation

log = logging.getLogger(__name__)
CANDIDATE, BASELINE = "candidate", "baseline"
WARM_CALLS, MEASURED_CALLS = 3, 5
SLOTS = 2
"""Draws of the inputs that the calls take in turn."""
TRACE_LIMIT_S, TOOL_LIMIT_S = 240.0, 120.0
"""The first call of a baseline may compile. Under nsys or ncu it does so once more."""
Piece = tuple[str, str]
"""A role and a tool."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One profile: ``content`` is a file that ``profiling`` imports, empty where ``problem`` says why there is none."""

    role: str
    tool: str
    workload: str
    host: str
    content: bytes = b""
    problem: str = ""


def capture(
    request: EvaluationRequest,
    roles: list[str],
    should_stop: Callable[[], bool] = lambda: False,
    taken: Collection[Piece] = (),
) -> Generator[Trace, None, None]:
    """A trace for each role and tool but those in ``taken``, torch's first: they take seconds, and nsys and ncu up to minutes.

    Whoever closes it in between may ask for the rest later. Raises nothing but ``Stopped``: what goes wrong is in the traces.
    """
    try:
        with on_a_warm_bench(request, should_stop) as evaluation:
            tools = ["torch", *(installed() if evaluation.gpu_bench is not None else ())]
            workload = largest(evaluation)
            for tool in tools:
                for role in roles:
                    if (role, tool) not in taken:
                        yield attempt(evaluation, role, tool, workload)
    except (CandidateError, CandidateFailure, Infrastructure, ProblemError) as error:
        log.warning("no profile: %s", error)
        for role in roles:
            if (role, "torch") not in taken:
                yield failed(role, "torch", "", str(error))


def attempt(evaluation: Evaluation, role: str, tool: str, workload: Workload) -> Trace:
    try:
        source, built = code_of(evaluation, role)
        if tool != "torch":
            content = by_tool(evaluation, tool, source, built, workload)
        elif evaluation.gpu_bench is not None:
            content = on_gpu(evaluation, role, source, built, workload)
        else:
            content = on_cpu(evaluation, role, source, built, workload)
    except (CandidateError, CandidateFailure, Infrastructure) as error:
        return failed(role, tool, workload.name, str(error))
    return Trace(role=role, tool=tool, workload=workload.name, host=host_name(), content=content)


def failed(role: str, tool: str, workload: str, problem: str) -> Trace:
    return Trace(role=role, tool=tool, workload=workload, host=host_name(), problem=problem[:1000])


def largest(evaluation: Evaluation) -> Workload:
    """Of the visible, timed workloads the one with most input: there the kernel matters most, not its launch."""
    shown = [w for w in evaluation.workloads if not w.hidden] or evaluation.workloads
    timed = [w for w in shown if w.timed] or shown
    problem = evaluation.problem
    return max(timed, key=lambda w: nbytes(problem, problem.inputs, w))


def code_of(evaluation: Evaluation, role: str) -> tuple[CandidateSource, Built]:
    source = evaluation.request.candidate
    if role == BASELINE:
        path = evaluation.problem.baselines[evaluation.request.baseline].file
        source = CandidateSource(backend="torch", files={"kernel.py": evaluation.problem.files[path]})
    return source, backends.built(source)


def by_tool(evaluation: Evaluation, tool: str, source: CandidateSource, built: Built, workload: Workload) -> bytes:
    calls = in_turn([f"{workload.name}/{slot}" for slot in range(SLOTS)])
    limit_s = evaluation.block_limit_s(TOOL_LIMIT_S)
    where = (tool, installed()[tool])
    return tooling.report(evaluation, where, source, built, workload, (calls, WARM_CALLS), MAX_TRACE_BYTES, limit_s)


def in_turn(slots: list[str]) -> list[str]:
    return [slots[call % len(slots)] for call in range(WARM_CALLS + MEASURED_CALLS)]


def on_cpu(evaluation: Evaluation, role: str, source: CandidateSource, built: Built, workload: Workload) -> bytes:
    bench = evaluation.bench
    assert bench is not None
    mine = role == CANDIDATE
    limits = CANDIDATE_LIMITS if mine else BASELINE_LIMITS
    stand = bench.stand(workload, SLOTS)
    slots = stand.slots[:SLOTS]
    bench.refresh(stand, slots)
    runner = Runner.start(
        f"{role}, profiled", evaluation.problem, source, built, limits, not mine, evaluation.should_stop, profiled=True
    )
    evaluation.runners.append(runner)
    try:
        runner.load()
        runner.map(workload, slots)
        calls = in_turn([slot.name for slot in slots])
        return runner.trace(calls, WARM_CALLS, MAX_TRACE_BYTES, evaluation.block_limit_s(TRACE_LIMIT_S))
    finally:
        evaluation.close_runner(runner)


def on_gpu(evaluation: Evaluation, role: str, source: CandidateSource, built: Built, workload: Workload) -> bytes:
    bench = evaluation.on_gpu
    runner = evaluation.start_gpu(f"{role}, traced", source, built, mine=role == CANDIDATE)
    try:
        runner.load()
        names = runner.names(workload, SLOTS)
        runner.make_slots(workload, names)
        runner.renew({name: bench.draw() for name in names}, names, bench.scales_of(workload))
        runner.call(names[:1], evaluation.block_limit_s(TRACE_LIMIT_S))  # which compiles, outside of the trace
        return runner.trace(in_turn(names), WARM_CALLS, MAX_TRACE_BYTES, evaluation.block_limit_s(TRACE_LIMIT_S))
    finally:
        evaluation.close_gpu(runner)
