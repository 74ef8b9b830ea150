"""The tools that a model may use while it makes one proposal, and what each answers."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from campaigns.harness.candidate import ENTRY, entry_path, tunables
from campaigns.harness.errors import CandidateError
from campaigns.harness.report import Report
from campaigns.harness.request import CandidateSource

from .base import Desk, IdeaSpent, PastAttempt, Proposal, ProposerError, ShouldStop, Task
from .conversation_types import ToolCall, ToolResult, ToolSpec
from .prompt import attempts_table, fence, sources

MAX_FILES = 64
MAX_SOURCE_CHARACTERS = 1_000_000
MAX_CHECKS = 4
"""Quick checks in one proposal: each takes the evaluator from candidates that wait for their verdict."""


BLOCK = re.compile(r"^```[ \t]*(?P<info>[^\n`]*)\n(?P<code>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
WITHOUT_TOOLS = """\
There are no tools here. Answer with one line that says what you tried, the reasons in a few sentences, and then each file
of the candidate, whole, in a code block whose first line is ```NAME (such as ```{entry})."""


class ToolFault(Exception):
    """The call was wrong in itself: unknown tool, no JSON, a missing argument. The model is told and may try again."""


def an_object(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT: dict[str, Any] = {"type": "string"}
FILES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "All files: relative path to full text. The entry file is named as the incumbent's is.",
}
SPECS = {
    "read_file": ToolSpec(
        "read_file",
        "The files of a candidate: the incumbent, the start kernel, or an earlier attempt by number.",
        an_object(("of",), of={"type": "string", "description": "incumbent, start, or an attempt's number"}),
    ),
    "read_attempt": ToolSpec(
        "read_attempt",
        "An earlier attempt: verdict, speed-ups, parameters, why it ended so, and its files.",
        an_object(("number",), number={"type": "integer"}),
    ),
    "list_attempts": ToolSpec("list_attempts", "All attempts of this campaign so far, one line each.", an_object()),
    "read_card": ToolSpec(
        "read_card",
        "A context card by name, such as hardware/h200.",
        an_object(("name",), name=TEXT),
    ),
    "read_region": ToolSpec(
        "read_region", "The part of the profile that a person marked: kernels, times, gaps, findings.", an_object()
    ),
    "read_kernel": ToolSpec(
        "read_kernel",
        "A kernel of that profile: its launches, or its counters where the profile is an Nsight Compute report.",
        an_object(
            ("name",),
            name={"type": "string", "description": "part of the kernel's name, any case"},
            metrics={"type": "string", "description": "also every metric whose name holds all of these words"},
        ),
    ),
    "quick_check": ToolSpec(
        "quick_check",
        f"Build and measure on the visible workloads only; not the verdict. At most {MAX_CHECKS} times a proposal.",
        an_object(("files",), files=FILES),
    ),
    "submit": ToolSpec(
        "submit",
        "Hand in the candidate. It is judged on visible and hidden workloads, and this ends your turn.",
        an_object(
            ("title", "files"),
            title={"type": "string", "description": "What was tried, in one line of plain words"},
            rationale={"type": "string", "description": "Why it should be faster, in numbers; what could go wrong"},
            files=FILES,
        ),
    ),
    "give_up": ToolSpec(
        "give_up",
        "Say that the idea cannot work for this problem and hardware, with the reason in numbers.",
        an_object(("reason",), reason=TEXT),
    ),
}


class Box(Protocol):
    """What a model may do in one conversation, and when it is done."""

    @property
    def specs(self) -> list[ToolSpec]: ...

    @property
    def done(self) -> bool: ...

    def run(self, call: ToolCall) -> ToolResult:
        """Raises ``ToolFault`` for a call that is none; the model is told."""

    def take_text(self, text: str) -> bool:
        """Hand in what a model without tools wrote. False: there is nothing to hand in. Raises ``ToolFault``."""

    with_tools: str
    """What to say to a model that only talks."""
    without_tools: str
    """The same where it has no tools."""


class ToolBox:
    """The tools of one proposal. ``proposal`` is set once a candidate has been handed in and taken."""

    with_tools = "Call `submit` with all files, or `give_up` with a reason."

    def __init__(self, task: Task, desk: Desk, should_stop: ShouldStop) -> None:
        self.task, self.desk, self.should_stop = task, desk, should_stop
        self.proposal: Proposal | None = None
        self.checks = 0
        self.without_tools = WITHOUT_TOOLS.format(entry=ENTRY.get(task.backend, "kernel"))
        self.tools: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "read_file": self.read_file,
            "read_attempt": self.read_attempt,
            "list_attempts": lambda arguments: fence("attempts", attempts_table(self.task.attempts)),
            "read_card": self.read_card,
            "read_region": self.read_region,
            "read_kernel": self.read_kernel,
            "quick_check": self.quick_check,
            "submit": self.submit,
            "give_up": self.give_up,
        }
        if desk.quick_check is None:
            del self.tools["quick_check"]
        if not task.region:
            del self.tools["read_region"]
        if desk.read_kernel is None:
            del self.tools["read_kernel"]

    @property
    def done(self) -> bool:
        return self.proposal is not None

    def take_text(self, text: str) -> bool:
        files = code_blocks(text, self.task.backend)
        if not files:
            return False
        said = [line.strip("#*: ") for line in BLOCK.sub("", text).splitlines() if line.strip("#*: `")]
        title = re.sub(r"^title\W+", "", said[0], flags=re.IGNORECASE) if said else "untitled"
        self.submit({"title": title, "rationale": BLOCK.sub("", text).strip(), "files": files})
        return True

    @property
    def specs(self) -> list[ToolSpec]:
        return [SPECS[name] for name in self.tools]

    def run(self, call: ToolCall) -> ToolResult:
        """The tool's answer. Raises ``ToolFault`` for a call that is none, ``IdeaSpent`` when the model gives up."""
        if call.name not in self.tools:
            raise ToolFault(f"There is no tool {call.name[:80]!r}. There are: {', '.join(self.tools)}.")
        try:
            arguments = json.loads(call.arguments)
        except ValueError as error:
            raise ToolFault(
                f"The arguments of {call.name} are not JSON: {error}. Send the call again, whole."
            ) from None
        if not isinstance(arguments, dict):
            raise ToolFault(f"The arguments of {call.name} are a JSON object, not {type(arguments).__name__}.")
        schema = SPECS[call.name].schema
        if missing := [name for name in schema["required"] if name not in arguments]:
            raise ToolFault(f"{call.name} wants {', '.join(missing)}.")
        return ToolResult(call, self.tools[call.name](arguments))

    def read_file(self, arguments: Mapping[str, Any]) -> str:
        of = str(arguments["of"]).strip().lower()
        if of in ("incumbent", "start"):
            return sources(of, self.task.incumbent if of == "incumbent" else self.task.start)
        return sources(f"attempt {of}", self.attempt(of).candidate)

    def read_attempt(self, arguments: Mapping[str, Any]) -> str:
        past = self.attempt(str(arguments["number"]))
        parameters = f"parameters {json.dumps(dict(past.parameters), default=str)}" if past.parameters else ""
        told = "\n".join(part for part in (attempts_table([past]), past.reason, parameters) if part)
        return f"{fence(f'attempt {past.number}', told)}\n{sources(f'attempt {past.number}', past.candidate)}"

    def attempt(self, number: str) -> PastAttempt:
        found = [
            a for a in self.task.attempts if str(a.number) == number.removeprefix("#").removeprefix("attempt").strip()
        ]
        if not found:
            there = ", ".join(str(a.number) for a in self.task.attempts[-20:]) or "none yet"
            raise ToolFault(f"There is no attempt {number[:40]!r}. The last ones are: {there}.")
        return found[0]

    def read_card(self, arguments: Mapping[str, Any]) -> str:
        name = str(arguments["name"])
        if name not in self.desk.cards:
            raise ToolFault(
                f"There is no further card {name[:80]!r}. There are: {', '.join(self.desk.cards) or 'none'}."
            )
        return self.desk.cards[name]

    def read_region(self, arguments: Mapping[str, Any]) -> str:
        return fence("profile region", self.task.region)

    def read_kernel(self, arguments: Mapping[str, Any]) -> str:
        assert self.desk.read_kernel is not None
        try:
            told = self.desk.read_kernel(str(arguments["name"])[:400], str(arguments.get("metrics", ""))[:400])
        except LookupError as error:
            raise ToolFault(fence("profile", str(error.args[0]), 4_000)) from None
        return fence("profile kernel", told, 12_000)

    def quick_check(self, arguments: Mapping[str, Any]) -> str:
        candidate = self.candidate(arguments)
        if refused := self.desk.refusal(candidate):
            return f"Not measured: {refused}"
        if self.checks >= MAX_CHECKS:
            return f"Not measured: {MAX_CHECKS} quick checks are all that one proposal has. Submit, or give up."
        self.checks += 1
        assert self.desk.quick_check is not None
        try:
            return report_text(self.desk.quick_check(candidate, self.should_stop))
        except ProposerError as error:
            return f"Not measured: {error}"

    def submit(self, arguments: Mapping[str, Any]) -> str:
        candidate = self.candidate(arguments)
        if refused := self.desk.refusal(candidate):
            raise ToolFault(
                f"Refused without being measured: {refused} Change the program itself, not its names or layout."
            )
        title = " ".join(str(arguments["title"]).split())[:200] or "untitled"
        rationale = str(arguments.get("rationale", ""))[:20_000]
        parameters = {t.name: t.value for t in tunables(candidate)}
        self.proposal = Proposal(candidate=candidate, title=title, rationale=rationale, parameters=parameters)
        return "Handed in. It will be judged now; your turn is over."

    def give_up(self, arguments: Mapping[str, Any]) -> str:
        raise IdeaSpent(" ".join(str(arguments["reason"]).split())[:2_000] or "no reason was given")

    def candidate(self, arguments: Mapping[str, Any]) -> CandidateSource:
        """The files as a candidate that can be built. Raises ``ToolFault`` with what is wrong."""
        files = arguments["files"]
        if isinstance(files, str) and files.strip().startswith("{"):  # some models write the object as a string
            try:
                files = json.loads(files)
            except ValueError:
                files = None
        if not isinstance(files, dict) or not files or not all(isinstance(v, str) for v in files.values()):
            raise ToolFault("`files` is an object of relative paths and full texts, with at least one file.")
        if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_SOURCE_CHARACTERS:
            raise ToolFault(f"At most {MAX_FILES} files and {MAX_SOURCE_CHARACTERS:,} characters are taken.")
        candidate = CandidateSource(backend=self.task.backend, files=dict(files))
        try:
            entry_path(candidate)
            tunables(candidate)
            for path, text in candidate.files.items():
                if path.endswith(".py"):
                    ast.parse(text, path)
        except CandidateError as error:
            raise ToolFault(f"This is no candidate: {error}") from None
        except SyntaxError as error:
            raise ToolFault(f"{path}:{error.lineno}: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ToolFault(f"{path} cannot be parsed: {error}") from None
        return candidate


def report_text(report: Report) -> str:
    """A quick check's report for a model: figures in plain words, what the candidate printed as data."""
    lines = [f"Outcome: {report.outcome}."]
    for name, ratio in (("the baseline", report.speedup), ("the incumbent", report.over_incumbent)):
        if ratio is not None:
            lines.append(f"Speed-up over {name}: {ratio.value:.3f}x, 95 % interval {ratio.lo:.3f} to {ratio.hi:.3f}.")
    lines += [f"Stage {s.name}: {s.status}." for s in report.stages]
    for row in report.workloads:
        if not row.hidden:
            lines.append(workload_line(row))
    told = [report.summary] + [f"{s.name}: {s.detail}" for s in report.stages if s.status != "passed"]
    told += [f"{f.severity} {f.rule}: {f.evidence} ({f.path or ''}:{f.line or ''})" for f in report.findings]
    lines.append(fence("what the harness says", "\n".join(told), 8_000))
    if report.build_log.strip():
        lines.append(fence("build log", report.build_log, 8_000))
    if report.output.strip():
        lines.append(fence("what the candidate printed", report.output, 4_000))
    return "\n".join(lines)


def workload_line(row: Any) -> str:
    times = ", ".join(
        f"{what} {value:.2f} µs"
        for what, value in (("time", row.time_us), ("incumbent", row.incumbent_us), ("floor", row.floor_us))
        if value is not None
    )
    right = {True: "right", False: "WRONG", None: "not checked"}[row.correct]
    error = (
        f", error {row.error:.2e} of {row.tolerance:.2e}" if row.error is not None and row.tolerance is not None else ""
    )
    return f"{row.name} {row.axes}: {right}{error}; {times or 'not measured'}."


def code_blocks(text: str, backend: str) -> dict[str, str]:
    """Files in a text: blocks that are named after a file, else the last block as the entry file."""
    entry = ENTRY.get(backend, "")
    blocks = [(m["info"].split(), m["code"]) for m in BLOCK.finditer(text)]
    named = {word: code for info, code in blocks for word in info if "." in word}
    if named:
        return named
    return {entry: blocks[-1][1]} if blocks and entry else {}
