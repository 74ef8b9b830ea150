"""One profiled launch of an Nsight Compute report (message ProfileResult), and the cubins that came with it.

Field numbers are those of NVIDIA's published .proto files (extras/FileFormat of an Nsight Compute installation).
Kept: names, launch geometry, metrics, rule results, NVTX ranges, device facts, and of imported source only what hot
lines need. Command line, host, addresses of the machine and environment are never read.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from profiling.events import clean
from profiling.importers.protobuf_wire import Value, fields, first, integer, real, text, view
from profiling.kernel_names import short_name

MANGLED, FUNCTION, DEMANGLED, GRID, BLOCK, METRICS, CREATED_S, SOURCE_ID, RULES, NVTX, CONTEXT, STREAM = (
    *(5, 6, 7, 10, 11, 13, 14),
    *(15, 19, 21, 22, 23),
)
PER_INSTRUCTION = re.compile(
    r"inst_executed$|smsp__pcsamp_(sample_count|warps_issue_stalled_\w+)$|thread_inst_executed_true$"
    r"|memory_l2_theoretical_sectors_global(_ideal)?$|memory_l1_wavefronts_shared(_ideal)?$"
)
"""Metrics whose values per instruction are kept, for source hot spots."""
CURVES = re.compile(r"launch__occupancy_per_(register_count|shared_mem_size|block_size)$")
"""Metrics whose instances are a curve: occupancy over registers, shared memory, block size."""
MAX_TEXT = 4000
MAX_METRIC_TEXT = 1 << 16

Number = int | float
Metric = Number | str


@dataclass
class Rule:
    """What one of Nsight Compute's own rules says.

    ``kind``: 1 ok, 2 warning, 3 error, 4 optimization. ``speedup`` is its estimate in percent, of the whole kernel
    where ``speedup_is_global``, else of the part that it looks at.
    """

    identifier: str
    name: str
    section: str
    title: str
    message: str
    kind: int
    speedup: float | None = None
    speedup_is_global: bool = False


@dataclass
class Launch:
    """One kernel launch with all its metrics. ``metrics`` holds what was collected and nothing else."""

    name: str
    demangled: str = ""
    mangled: str = ""
    grid: tuple[int, int, int] = (0, 0, 0)
    block: tuple[int, int, int] = (0, 0, 0)
    context: int = -1
    stream: int = -1
    created_s: int = 0
    source_id: int = 0
    metrics: dict[str, Metric] = field(default_factory=dict)
    instances: dict[str, list[tuple[Metric, Metric]]] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    nvtx: list[str] = field(default_factory=list)
    unknown_names: int = 0


@dataclass
class Cubin:
    """The machine code of kernels, with its line table, and the source text that was imported with it."""

    id: int
    elf: bytes
    functions: dict[str, int]
    """Load address by mangled name."""
    files: dict[str, str]
    """Source text by path."""


def read_launch(data: memoryview, strings: list[str]) -> Launch:
    """A ProfileResult.

    :param strings: the report's string tables, one after another.
    :raises WireError: where the bytes are no message.
    """
    launch = Launch("")
    function = demangled = ""
    for number, _, value in fields(data):
        if number == METRICS:
            read_metric(view(value), strings, launch)
        elif number == FUNCTION:
            function = text(value)
        elif number == MANGLED:
            launch.mangled = text(value)
        elif number == DEMANGLED:
            demangled = text(value)
        elif number in (GRID, BLOCK):
            setattr(launch, "grid" if number == GRID else "block", dimensions(view(value)))
        elif number == RULES:
            read_rules(view(value), launch)
        elif number == NVTX:
            launch.nvtx = nvtx_path(view(value))
        else:
            read_small(number, value, launch)
    launch.name = clean(short_name(function or demangled or launch.mangled) or "(unnamed kernel)")[:MAX_TEXT]
    launch.demangled = clean(demangled or launch.mangled or launch.name)[:MAX_TEXT]
    return launch


def read_small(number: int, value: Value, launch: Launch) -> None:
    if number == CREATED_S:
        launch.created_s = integer(value)
    elif number == CONTEXT:
        launch.context = integer(value, -1)
    elif number == STREAM:
        launch.stream = integer(value, -1)
    elif number == SOURCE_ID:
        launch.source_id = integer(first(view(value), 1))


def dimensions(message: memoryview) -> tuple[int, int, int]:
    found = {number: integer(value) for number, _, value in fields(message)}
    return found.get(1, 0), found.get(2, 0), found.get(3, 0)


def read_metric(message: memoryview, strings: list[str], launch: Launch) -> None:
    name, value = "", None
    wants_instances = False
    for number, _, raw in fields(message):
        if number == 1:
            index = integer(raw, -1)
            if not 0 <= index < len(strings):
                launch.unknown_names += 1
                return
            name = strings[index]
            wants_instances = bool(PER_INSTRUCTION.match(name) or CURVES.match(name))
        elif number == 2:
            value = metric_value(view(raw))
        elif number == 3 and wants_instances:
            pair = {n: metric_value(view(v)) for n, _, v in fields(view(raw)) if n in (1, 2)}
            if pair.get(1) is not None and pair.get(2) is not None:
                launch.instances.setdefault(name, []).append((pair[1], pair[2]))  # type: ignore[arg-type]
    if name and value is not None:
        launch.metrics[name] = value


def metric_value(message: memoryview) -> Metric | None:
    """1 string, 2 float, 3 double, 4 uint32, 5 uint64; None where it has no value."""
    for number, _, value in fields(message):
        if number == 1:
            return clean(text(value))[:MAX_METRIC_TEXT]
        if number in (2, 3):
            found = real(value)
            return None if math.isnan(found) else found
        if number in (4, 5):
            return integer(value)
    return None


def read_rules(message: memoryview, launch: Launch) -> None:
    """A RuleResult: 1 identifier, 2 name, 3 body, 4 section. One ``Rule`` for each message in its body."""
    head: dict[int, str] = {}
    bodies = []
    for number, _, value in fields(message):
        if number in (1, 2, 4):
            head[number] = clean(text(value))[:200]
        elif number == 3:
            bodies.append(view(value))
    for body in bodies:
        for number, _, item in fields(body):
            if number == 1 and (rule := read_rule(view(item), head)):
                launch.rules.append(rule)


def read_rule(item: memoryview, head: dict[int, str]) -> Rule | None:
    """A body item: 1 message (1 text, 2 kind, 4 title), 10 speed-up (1 kind: 1 local, 2 global; 2 percent)."""
    words: dict[int, Any] = {}
    speedup: dict[int, Value] = {}
    for number, _, value in fields(item):
        if number == 1:
            words = {n: v for n, _, v in fields(view(value))}
        elif number == 10:
            speedup = {n: v for n, _, v in fields(view(value))}
    if not words:
        return None
    percent = real(speedup.get(2)) if 2 in speedup else None
    return Rule(
        head.get(1, ""),
        head.get(2, ""),
        head.get(4, ""),
        clean(text(words.get(4)))[:200],
        clean(without_markup(text(words.get(1))))[:MAX_TEXT],
        integer(words.get(2)),
        percent if percent is not None and math.isfinite(percent) else None,
        integer(speedup.get(1)) == 2,
    )


def without_markup(message: str) -> str:
    """``@section:Name:words@`` and ``@url:words:address@`` → the words."""
    message = re.sub(r"@section:[^:@]*:([^@]*)@", r"\1", message)
    return re.sub(r"@url:([^:@]*):[^@]*@", r"\1", message)


def nvtx_path(message: memoryview) -> list[str]:
    """The push/pop ranges around the launch, outermost first, over all threads and domains."""
    names = []
    for number, _, thread in fields(message):
        for inner, _, domain in fields(view(thread)) if number == 2 else ():
            for n, _, pushed in fields(view(domain)) if inner == 2 else ():
                if n == 3 and (name := clean(text(first(view(pushed), 1)))[:200]):
                    names.append(name)
    return names


def read_cubin(data: memoryview) -> Cubin:
    """A source entry: 1 id, 4 cubin, 8 imported files (1: path, text), 9 functions (1: name, load address)."""
    cubin = Cubin(0, b"", {}, {})
    for number, _, value in fields(data):
        if number == 1:
            cubin.id = integer(value)
        elif number == 4:
            cubin.elf = bytes(view(value))
        elif number in (8, 9):
            for n, _, item in fields(view(value)):
                if n == 1:
                    pair = {k: v for k, _, v in fields(view(item))}
                    if number == 8:
                        cubin.files[text(pair.get(1))] = text(pair.get(2))
                    else:
                        cubin.functions[text(pair.get(1))] = integer(pair.get(2))
    return cubin


def versions(session: memoryview) -> dict[str, str]:
    """Of a block header's session details: versions by product. Host and command line are passed by."""
    found = {}
    for number, _, value in fields(session):
        if number == 8:
            pair = {n: text(v) for n, _, v in fields(view(value)) if n in (1, 2)}
            found[clean(pair.get(1, ""))[:80]] = clean(pair.get(2, ""))[:80]
    return found
