"""Nsight Compute reports (.ncu-rep, .ncu-repz): own reader, format version 7.

What is read is an allow-list: kernel names, geometry, metrics, rule results, NVTX ranges, GPU name, tool version, and
the text of hot source lines where the report carries source. Command line, host, addresses and cubins are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from profiling.events import GPU_COLUMNS, Capture, Kind, Names, concatenate
from profiling.importers.limits import Limits, Progress, Refused
from profiling.importers.ncu_container import ZSTD_MAGIC, Container, damaged, expand
from profiling.importers.ncu_lines import LineTable, line_tables
from profiling.importers.ncu_results import CURVES, Cubin, Launch, read_cubin, read_launch, versions
from profiling.importers.protobuf_wire import WireError
from profiling.ncu import report
from profiling.ncu.groups import duration, groups
from profiling.ncu.hotspots import HotLine, hot_lines
from profiling.ncu.metrics import DEVICE_NAME, DYNAMIC_SHARED_BYTES, REGISTERS, STATIC_SHARED_BYTES, Metrics
from profiling.ncu.rules import remarks
from profiling.ncu.store import Writer

MAX_SOURCE_BYTES = 64 << 20


def read(path: Path, progress: Progress, limits: Limits) -> Capture:
    """Read a report.

    The launches are laid end to end on one lane, in report order, each as long as it was measured: nothing else of the
    timeline is known.

    :raises Refused: when the file is cut, damaged, or of another version.
    """
    with path.open("rb") as plain:
        compressed = plain.read(4) == ZSTD_MAGIC
        file = expand(path, limits) if compressed else plain
        try:
            size = file.seek(0, 2)
            return Reader(Container(file, size, limits), progress, limits).read("ncu-repz" if compressed else "ncu-rep")
        finally:
            file.close()


class Source:
    """Line tables and source text of the cubins, by the id that launches refer to."""

    def __init__(self) -> None:
        self.functions: dict[int, dict[str, int]] = {}
        self.tables: dict[int, dict[str, LineTable]] = {}
        self.files: dict[str, list[str]] = {}
        self._held = 0

    def add(self, cubin: Cubin) -> None:
        self.functions.setdefault(cubin.id, {}).update(cubin.functions)
        if b".debug_line" in cubin.elf:
            self.tables.setdefault(cubin.id, {}).update(line_tables(cubin.elf))
        for path, text in cubin.files.items():
            if path not in self.files and self._held + len(text) < MAX_SOURCE_BYTES:
                self._held += len(text)
                self.files[path] = text.splitlines()

    def line(self, place: tuple[str, int]) -> str:
        lines = self.files.get(place[0], [])
        return lines[place[1] - 1] if 0 < place[1] <= len(lines) else ""

    def hot_lines(self, launch: Launch, mangled: str) -> list[HotLine]:
        addresses = [a for pairs in launch.instances.values() for a, _ in pairs if isinstance(a, int)]
        if not addresses:
            return []
        base = self.functions.get(launch.source_id, {}).get(mangled, min(addresses))
        table = self.tables.get(launch.source_id, {}).get(mangled, LineTable())
        per_instruction = {k: v for k, v in launch.instances.items() if not CURVES.match(k)}
        return hot_lines(per_instruction, base, table.at, self.line)


class Reader:
    """One pass over a report's entries into a ``Capture`` and the launches' own records."""

    def __init__(self, container: Container, progress: Progress, limits: Limits) -> None:
        self.container, self.progress, self.limits = container, progress, limits
        self.source, self.writer = Source(), Writer()
        self.capture = Capture("ncu-rep", names=Names(limits.max_name_chars))
        self.remarks: dict[int, list[Any]] = {}
        self.rows: list[dict[str, int]] = []
        self.devices: set[str] = set()
        self.unknown_names = 0

    def read(self, format: str) -> Capture:
        capture = self.capture
        capture.format, capture.schema = format, "version 7"
        self._read_versions()
        for launch in self._launches():
            self._take(launch)
        if self.unknown_names:
            raise damaged(f"{self.unknown_names:,} metrics refer to names that its string tables do not hold")
        table = {key: np.array([row[key] for row in self.rows], np.int64) for key in self.rows[0]} if self.rows else {}
        capture.gpu = concatenate([table] if table else [], GPU_COLUMNS)
        capture.device_names = {0: " and ".join(sorted(self.devices))[:80]} if self.devices else {}
        capture.not_captured = ["CUDA API calls", "NVTX ranges", "copies", "memsets", "whole CUDA graphs"]
        capture.notes = [report.NO_TIMELINE] if self.rows else []
        capture.counts = {"results": len(self.rows)}
        self._attach()
        return capture

    def _read_versions(self) -> None:
        for block in self.container.blocks:
            if block.session:
                try:
                    found = versions(memoryview(block.session))
                except WireError:
                    continue
                tool = next((v for k, v in found.items() if k.startswith("Nsight Compute")), "")
                if tool:
                    self.capture.producer = f"Nsight Compute {tool.partition(' ')[0]}"
        self.capture.producer = self.capture.producer or "Nsight Compute"

    def _launches(self) -> Iterator[Launch]:
        size = max(1, self.container.size)
        for entry in self.container.entries(("source", "result")):
            self.progress(int(5 + 80 * entry.at / size), "reading kernels")
            try:
                if entry.kind == "source":
                    self.source.add(read_cubin(entry.data))
                else:
                    yield read_launch(entry.data, self.container.strings)
            except WireError as error:
                raise damaged(f"the {entry.kind} at byte {entry.at:,} is no message ({error})") from None
            if len(self.rows) > self.limits.max_events:
                raise Refused("too many kernels in one report", "Profile fewer kernels (`ncu --launch-count`).")

    def _take(self, launch: Launch) -> None:
        metrics = Metrics(launch.metrics)
        self.unknown_names += launch.unknown_names
        if device := metrics.text(DEVICE_NAME):
            self.devices.add(device)
        self.remarks[len(self.rows)] = remarks(metrics)
        self.rows.append(self._row(launch, metrics))
        facts = {
            "name": launch.name,
            "demangled": launch.demangled,
            "grid": launch.grid,
            "block": launch.block,
            "context": launch.context,
            "stream": launch.stream,
            "nvtx": launch.nvtx,
            "created_s": launch.created_s,
        }
        details = {
            "metrics": launch.metrics,
            "curves": {name: pairs for name, pairs in launch.instances.items() if CURVES.match(name)},
            "rules": [vars(rule) for rule in launch.rules],
            "lines": [line.as_dict() for line in self.source.hot_lines(launch, launch.mangled)],
        }
        self.writer.add(facts, details)

    def _row(self, launch: Launch, metrics: Metrics) -> dict[str, int]:
        start = self.rows[-1]["end"] if self.rows else 0
        took = duration({"metrics": launch.metrics}) or 0
        name = self.capture.names.intern(launch.name)

        def whole(metric: str) -> int:
            value = metrics.number(metric)
            return -1 if value is None else int(value)

        return {
            "start": start,
            "end": start + round(took),
            "process": 0,
            "device": 0,
            "context": launch.context,
            "stream": launch.stream,
            "correlation": -1,
            "graph_node": -1,
            "name": name,
            "full_name": self.capture.names.intern(launch.demangled),
            "kind": int(Kind.KERNEL),
            **{f"grid_{axis}": size for axis, size in zip("xyz", launch.grid, strict=True)},
            **{f"block_{axis}": size for axis, size in zip("xyz", launch.block, strict=True)},
            "registers": whole(REGISTERS),
            "static_shared_bytes": whole(STATIC_SHARED_BYTES),
            "dynamic_shared_bytes": whole(DYNAMIC_SHARED_BYTES),
        }

    def _attach(self) -> None:
        found = groups(self.writer.launches)
        starts = {index: (row["start"], row["end"]) for index, row in enumerate(self.rows)}
        device = {
            "id": 0,
            "name": self.capture.device_names.get(0),
            "busy_share": None,
            "busy_ns": None,
            "span_ns": None,
        }
        self.capture.report = report.overrides(found, self.remarks, starts) | {
            "devices": [device | {"events": len(self.rows)}] if self.rows else []
        }
        meta = {"producer": self.capture.producer, "gpus": sorted(self.devices)}
        self.capture.attach = lambda folder: self.writer.save(folder, meta)
