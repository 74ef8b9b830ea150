"""``check_problem``: every question, workload by workload, from the smallest on; then again in a fresh process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from ..errors import CandidateFailure, ProblemError, Stopped
from ..problem import Problem, Workload, load_problem
from .desk import Desk
from .findings import Findings, ProblemReport
from .kernels import check_baselines, check_start
from .workload import Fingerprint, Look, Seen, fingerprint

Progress = Callable[[str, str], None]
LIMIT_S = 1200.0
ASK_LIMIT_S = 60.0
MAX_VALUES = 1 << 28
CUDA_VALUES = 1 << 22
"""Values of inputs and outputs up to which a workload for a GPU is also drawn on the CPU."""
CUDA_S = 90.0
DO = "See docs/problem-intake.md."


def check_problem(
    files: dict[str, str],
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    kernels: bool = True,
) -> ProblemReport:
    """Ask everything of a problem folder. ``progress(step, detail)`` is called as it goes.

    Whatever is wrong with the problem is in the report. Raises ``Stopped`` when asked to stop, and ``Infrastructure``
    when this machine could not check (no sandbox, no memory).
    """
    began = time.monotonic()
    findings = Findings()
    try:
        problem = load_problem(files)
    except ProblemError as error:
        findings.refuse("format", "", str(error), "docs/problems.md shows the format.")
        return findings.report("", "", time.monotonic() - began)
    Check(problem, findings, progress or (lambda step, detail: None), should_stop or (lambda: False)).run(kernels)
    return findings.report(problem.name, problem.title, time.monotonic() - began)


class Check:
    def __init__(
        self, problem: Problem, findings: Findings, progress: Progress, should_stop: Callable[[], bool]
    ) -> None:
        self.problem, self.findings, self.progress = problem, findings, progress
        self.asked_to_stop = should_stop
        self.until = time.monotonic() + LIMIT_S
        self.seen = Seen()
        self.desk: Desk | None = None

    def should_stop(self) -> bool:
        return self.asked_to_stop() or time.monotonic() > self.until

    def run(self, kernels: bool) -> None:
        try:
            prints = self.look_at_all()
            if prints:
                self.compare_with_fresh(prints)
            if kernels and not self.findings.reasons:
                check_baselines(self.problem, self.findings, self.progress, self.should_stop)
                check_start(self.problem, self.findings, self.progress, self.should_stop)
        except Stopped:
            if self.asked_to_stop():
                raise
            self.findings.refuse(
                "too-slow", "", f"the check took more than {LIMIT_S:.0f} s.", "Give it smaller workloads."
            )
        finally:
            self.close()
        if not any(w.hidden for w in self.problem.workloads):
            self.findings.note(
                "no workload is hidden: a kernel that is right for the visible shapes only would be kept"
            )
        if "def edge_inputs(" not in self.problem.files["inputs.py"]:
            self.findings.note("inputs.py has no edge_inputs: zeros, large values and cancellation are not tried")

    def close(self) -> None:
        if self.desk is not None:
            self.desk.close()
            self.desk = None

    def ready_desk(self) -> Desk:
        if self.desk is None or self.desk.channel.closed or self.desk.channel.exited():
            self.close()
            self.desk = Desk(self.problem, self.should_stop, ASK_LIMIT_S)
            self.desk.ready()
        return self.desk

    def workloads(self) -> Iterator[Workload]:
        """From the smallest on. Those for a GPU last, as far as they are small and there is time."""
        sized = sorted(
            ((self.values(w), w) for w in self.problem.workloads), key=lambda p: (p[1].device != "cpu", p[0])
        )
        limit = CUDA_VALUES if self.problem.workloads_on("cpu") else MAX_VALUES
        until = time.monotonic() + CUDA_S
        for count, (values, workload) in enumerate(sized):
            if workload.device == "cpu":
                until = time.monotonic() + CUDA_S
            if values > MAX_VALUES and workload.device == "cpu":
                self.findings.refuse(
                    "too-large",
                    "",
                    f"a draw has {values:,} values; a workload on a CPU has at most {MAX_VALUES:,}.",
                    "Make its axes smaller.",
                    workload.name,
                )
            elif workload.device != "cpu" and (values > limit or (count and time.monotonic() > until)):
                self.findings.left_out[workload.name] = (
                    f"for a GPU, and too large to be tried on a CPU ({values:,} values)"
                )
            else:
                yield workload

    def values(self, workload: Workload) -> int:
        specs = self.problem.inputs + self.problem.outputs
        return sum(math.prod(self.problem.shape(spec, workload)) for spec in specs)

    def look_at_all(self) -> dict[str, Fingerprint]:
        prints = {}
        for workload in self.workloads():
            self.progress("workloads", workload.name)
            try:
                look = Look(self.problem, self.ready_desk().open(workload), self.findings, self.seen)
                prints[workload.name] = look.run()
                self.findings.checked.append(workload.name)
            except CandidateFailure as failure:
                self.failed(failure, workload)
                if not self.desk or self.desk.channel.closed or workload.name not in prints:
                    self.close()
                if failure.outcome == "timed_out":  # the larger ones that follow would take longer still
                    break
        if prints:
            self.seen.conclude(self.problem, self.findings)
        if not prints and not self.findings.reasons:
            self.findings.refuse(
                "nothing-checked",
                "",
                "every workload is for a GPU and too large to be tried here.",
                "Add one that is small (hidden = true, timed = false will do).",
            )
        return prints

    def failed(self, failure: CandidateFailure, workload: Workload) -> None:
        what = failure.message
        disagrees = "problem.toml says" in what or "problem.toml names" in what
        rule = {"timed_out": "too-slow", "out_of_memory": "out-of-memory"}.get(failure.outcome, "reference-fails")
        printed = self.desk.output()[-2000:].strip() if self.desk and not self.desk.channel.closed else ""
        where = last_line_of(printed, ("inputs.py", "reference.py"))
        self.findings.refuse(
            "shapes" if disagrees else rule,
            what if disagrees else rule,
            f"{what}{f' ({where})' if where else ''}",
            "Make problem.toml and the Python files agree." if disagrees else DO,
            workload.name,
        )

    def compare_with_fresh(self, prints: dict[str, Fingerprint]) -> None:
        """The same seeds in a new process: what depends on anything but the generator is seen now."""
        self.close()
        by_name = {w.name: w for w in self.problem.workloads}
        for name, before in prints.items():
            self.progress("a fresh process", name)
            try:
                after = fingerprint(self.ready_desk().open(by_name[name]), before.seed)
            except CandidateFailure as failure:
                self.failed(failure, by_name[name])
                continue
            if after.inputs != before.inputs:
                self.findings.refuse(
                    "not-deterministic",
                    "inputs.py",
                    "make_inputs gave other inputs for the same generator state in a fresh process.",
                    "Draw from the generator that is given (generator=generator), and from nothing else.",
                    name,
                )
            elif after.outputs != before.outputs:
                self.findings.refuse(
                    "not-deterministic",
                    "reference.py",
                    "reference.py gave other outputs for the same inputs in a fresh process.",
                    "Take out what depends on time, process, or random numbers.",
                    name,
                )


def last_line_of(text: str, names: tuple[str, ...]) -> str:
    """The innermost place in the problem's own files that a traceback names: ``reference.py, line 12``."""
    for line in reversed(text.splitlines()):
        for name in names:
            if f'/{name}", line ' in line:
                return f"{name}, line {line.partition(', line ')[2].partition(',')[0]}"
    return ""
