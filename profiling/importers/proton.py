"""Triton Proton's call trees (JSON in hatchet's literal format): scopes and kernels with time, FLOPs and bytes.

A node is ``{"frame": {"name", "type"}, "metrics": {"time (ns)", "count", "flops16", "bytes" …}, "children": […]}``;
behind the root stands a table of devices. There is no timeline in it: kernels are laid end to end in the order of the
tree, ``count`` launches of the mean length each, with the scopes as ranges above them. That is a flame graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from profiling.events import GPU_COLUMNS, NVTX_COLUMNS, Capture, Kind, Names, clean, concatenate
from profiling.importers import kineto_bytes
from profiling.importers.kineto_events import DECODE_ERRORS, cleaned
from profiling.importers.limits import Limits, Progress, Refused
from profiling.kernel_names import short_name
from profiling.words import count, duration, percent

MAX_BYTES = 512 << 20
MAX_DRAWN = 200
"""A kernel that ran more often than this under one scope is drawn as this many pieces; its sum stays right."""
TIME = re.compile(r"^(?:time|gpu time|cycles?) ?\((?P<unit>ns|us|µs|ms|s)\)(?: \(inc\))?$", re.IGNORECASE)
NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NO_TIMELINE = "Proton sums times by scope: there is no timeline, no idle time and no step time"
UNKNOWN_BUSY = {"busy_share": None, "busy_ns": None, "span_ns": None}
HINT = "Write it with `proton.start(name)` … `proton.finalize()`; its default output is the .hatchet file to upload."


@dataclass
class Node:
    """``time_ns`` is the node's own time (a kernel's); a scope lasts as long as all that is below it."""

    name: str
    time_ns: int = 0
    launches: int = 0
    device: int = -1
    children: list[Node] = field(default_factory=list)

    def total_ns(self) -> int:
        """Without recursion: a call tree may be deeper than Python's stack."""
        total, stack = 0, [self]
        while stack:
            node = stack.pop()
            total += node.time_ns
            stack.extend(node.children)
        return total


def read(path: Path, progress: Progress, limits: Limits) -> Capture:
    """Read a call tree.

    :raises Refused: when the JSON is damaged, or holds no time.
    """
    document = load(path, progress, limits)
    roots, devices = nodes(document), device_names(document)
    if not roots:
        raise Refused("a JSON file, but no call tree: no node has a frame", HINT, format="proton")
    times = sum(root.total_ns() for root in roots)
    if not times:
        found = ", ".join(sorted(metric_names(document))[:6]) or "none"
        raise Refused(f"a Proton call tree without times (its metrics: {found})", HINT, format="proton")
    return Drawing(roots, devices, limits).capture()


def load(path: Path, progress: Progress, limits: Limits) -> list[Any]:
    parts, size = [], 0

    def tell(share: float) -> None:
        progress(int(5 + 40 * share), "reading the call tree")

    for piece in kineto_bytes.chunks(path, limits, tell):
        size += len(piece)
        if size > MAX_BYTES:
            raise Refused(f"a call tree of more than {MAX_BYTES >> 20} MiB", "Use fewer scopes.", format="proton")
        parts.append(piece)
    text = b"".join(parts)
    for attempt in (text, None):
        try:
            found = msgspec.json.decode(attempt if attempt is not None else cleaned(text))
        except DECODE_ERRORS as error:
            reason = str(error)
            continue
        if isinstance(found, list):
            return found
        break
    else:
        raise Refused(f"a damaged Proton call tree: {reason[:160]}", HINT, format="proton")
    raise Refused("a JSON file, but no list of call trees", HINT, format="proton")


def nodes(document: list[Any]) -> list[Node]:
    """The trees as nodes, built without recursion."""
    roots: list[Node] = []
    stack: list[tuple[Any, list[Node]]] = [(item, roots) for item in reversed(document)]
    while stack:
        item, siblings = stack.pop()
        if not isinstance(item, dict) or not isinstance(item.get("frame"), dict):
            continue
        metrics = item.get("metrics")
        metrics = metrics if isinstance(metrics, dict) else {}
        children = item.get("children")
        node = Node(clean(item["frame"].get("name", ""))[:4096] or "(unnamed)")
        siblings.append(node)
        if isinstance(children, list):
            stack.extend((child, node.children) for child in reversed(children))
        known = {re.sub(r"[ _]", "", name.lower()): value for name, value in metrics.items()}
        node.time_ns, node.launches = time_of(metrics, not children), max(1, whole(known.get("count"), 1))
        node.device = whole(known.get("deviceid"), -1)
    return roots


def time_of(metrics: dict[str, Any], leaf: bool) -> int:
    """A node's own time in ns. Metrics are exclusive, unless they say ``(inc)``; of a leaf both are the same."""
    for name, value in metrics.items():
        match = TIME.match(name)
        if (
            match
            and (leaf or not name.endswith("(inc)"))
            and isinstance(value, int | float)
            and not isinstance(value, bool)
            and 0 < value < 1e18
        ):
            return round(value * NS[match["unit"].lower()])
    return 0


def whole(value: Any, default: int) -> int:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return int(value) if isinstance(value, int | float) and 0 <= value < 1 << 31 else default


def metric_names(document: list[Any]) -> set[str]:
    found: set[str] = set()
    stack = list(document)
    while stack and len(found) < 100:
        item = stack.pop()
        if isinstance(item, dict):
            metrics, children = item.get("metrics"), item.get("children")
            found |= {clean(name)[:60] for name in metrics} if isinstance(metrics, dict) else set()
            stack.extend(children if isinstance(children, list) else [])
    return found


def device_names(document: list[Any]) -> dict[int, str]:
    """``{"CUDA": {"0": {"arch": "90", …}}}``: Proton says the architecture, not the product."""
    found = {}
    for item in document:
        for vendor, devices in item.items() if isinstance(item, dict) and "frame" not in item else ():
            for number, facts in devices.items() if isinstance(devices, dict) else ():
                if isinstance(facts, dict) and str(number).isdigit():
                    arch = clean(facts.get("arch", ""))[:20]
                    found[int(number)] = f"{clean(vendor)[:20]} {('sm_' + arch) if arch.isdigit() else arch}".strip()
    return found


class Drawing:
    """Lays a call tree out in time."""

    def __init__(self, roots: list[Node], devices: dict[int, str], limits: Limits) -> None:
        self.roots, self.devices, self.limits = roots, devices, limits
        self.result = Capture("proton", producer="Triton Proton", schema="hatchet", names=Names(limits.max_name_chars))
        self.kernels: list[tuple[int, ...]] = []
        self.scopes: list[tuple[int, ...]] = []
        self.launches = 0
        self.totals: dict[str, list[int]] = {}

    def capture(self) -> Capture:
        self._draw()
        result = self.result
        result.gpu = concatenate([table(self.kernels, ("start", "end", "device", "name"))], GPU_COLUMNS)
        result.gpu["full_name"] = result.gpu["name"].copy()
        result.gpu["kind"][:] = Kind.KERNEL
        result.gpu["stream"][:] = 0
        result.gpu["process"][:] = 0
        result.nvtx = concatenate([table(self.scopes, ("start", "end", "name"))], NVTX_COLUMNS)
        result.nvtx["thread"][:], result.nvtx["domain"][:], result.nvtx["style"][:] = 0, 0, 59
        result.range_word, result.thread_labels, result.thread_process = "Scopes", {0: "call tree"}, {0: 0}
        result.device_names = {int(d): self.devices[d] for d in np.unique(result.gpu["device"]) if d in self.devices}
        result.not_captured = ["copies", "CUDA API calls", "synchronisation"]
        result.notes = [NO_TIMELINE]
        result.counts = {"launches": self.launches}
        result.report = self._report()
        return result

    def _draw(self) -> None:
        """Depth first, without recursion: enter a scope, draw what is in it, leave it at the time then reached."""
        now = 0
        steps: list[Callable[[int], int] | Node] = list(reversed(self.roots))
        while steps:
            step = steps.pop()
            if isinstance(step, Node):
                if step.children:
                    steps.append(self._leaving(step, now))
                    steps.extend(reversed(step.children))
                now = self._kernel(step, now)
            else:
                now = step(now)

    def _leaving(self, node: Node, start: int) -> Callable[[int], int]:
        def leave(now: int) -> int:
            if now > start and node.name != "ROOT":
                self.scopes.append((start, now, self.result.names.intern(node.name)))
            return now

        return leave

    def _kernel(self, node: Node, now: int) -> int:
        if node.time_ns <= 0:
            return now
        self.launches += node.launches
        sums = self.totals.setdefault(node.name, [0, 0])
        sums[0] += node.launches
        sums[1] += node.time_ns
        pieces = min(node.launches, MAX_DRAWN, max(1, node.time_ns))
        name = self.result.names.intern(short_name(node.name))
        for index in range(pieces):
            start, end = (now + node.time_ns * part // pieces for part in (index, index + 1))
            self.kernels.append((start, end, max(node.device, 0), name))
        if len(self.kernels) > self.limits.max_events:
            raise Refused("more launches than can be imported", "Use fewer scopes.", format="proton")
        return now + node.time_ns

    def _report(self) -> dict[str, Any]:
        everything = sum(total for _, total in self.totals.values())
        rows = sorted(self.totals.items(), key=lambda item: -item[1][1])
        top, (calls, total) = rows[0]
        name = top if len(top) <= 90 else top[:89] + "…"
        return {
            "span_ns": None,
            "idle_ns": {},
            "findings": [],
            "kernels": self.launches,
            "label": "not enough data",
            "label_title": f"{name} takes {percent(total / everything)} of the kernel time",
            "label_reason": f"{count(calls, 'launch', 'launches')} of {duration(total)} in all; {NO_TIMELINE}: "
            "capture with nsys or torch.profiler to see why the GPU waits, with ncu to see what a kernel waits for",
            "top_kernels": [
                {
                    "name": kernel,
                    "calls": launches,
                    "total_ns": spent,
                    "mean_ns": round(spent / launches, 1),
                    "share": round(spent / everything, 6),
                }
                for kernel, (launches, spent) in rows[:20]
            ],
            "devices": [
                UNKNOWN_BUSY | {"id": device, "name": self.devices.get(device), "events": events}
                for device, events in self._launches_by_device().items()
            ],
        }

    def _launches_by_device(self) -> dict[int, int]:
        devices, numbers = np.unique(self.result.gpu["device"], return_counts=True)
        return dict(zip(devices.tolist(), numbers.tolist(), strict=True))


def table(rows: list[tuple[int, ...]], columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    if not rows:
        return {}
    whole = np.array(rows, np.int64)
    return {name: np.ascontiguousarray(whole[:, index]) for index, name in enumerate(columns)}
