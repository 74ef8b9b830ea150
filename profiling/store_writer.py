"""Write a capture as memory-mapped columns (format: ``profiling.store``)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from profiling import counters, lanes, links, orders
from profiling.events import GPU_KINDS, Capture, Column, Kind, Table
from profiling.store import EVENTS_A_STEP, Lane, Row

NVTX_START_END = 60


def write(capture: Capture, store_dir: Path) -> None:
    """Make ``store_dir``: complete, or not there at all. An older store in its place is replaced."""
    store_dir.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{store_dir.name}.", dir=store_dir.parent))
    try:
        Writer(capture, scratch).write()
        if capture.attach:
            capture.attach(scratch)
        if store_dir.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{store_dir.name}.old.", dir=store_dir.parent))
            os.replace(store_dir, old / "store")
            os.replace(scratch, store_dir)
            shutil.rmtree(old)
        else:
            os.replace(scratch, store_dir)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def lane_bounds(table: Table) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) row of each lane."""
    return pairwise(np.append(table["lane_first"], len(table["start"])).tolist())


class Writer:
    """Sorts the events of a capture into rows and saves them."""

    def __init__(self, capture: Capture, folder: Path) -> None:
        self.capture, self.folder = capture, folder
        self.lanes: list[Lane] = []
        self.rows: list[Row] = []

    def write(self) -> None:
        capture = self.capture
        nvtx = self._by_lane(capture.nvtx, ("thread", "domain", "range_style"))
        gpu = self._by_lane(capture.gpu, ("device", "process", "context", "stream"))
        sync = self._by_lane(capture.sync, ("process",))
        api = self._by_lane(capture.api, ("thread",))
        os_calls = self._by_lane(capture.os, ("thread",))
        self._nest(nvtx)
        gpu["launch"] = links.launches(capture, gpu, api)
        gpu["nvtx"] = self._ranges_of_gpu(gpu, api, nvtx)
        self._events([(nvtx, Kind.NVTX), (gpu, None), (sync, Kind.SYNC), (api, Kind.API), (os_calls, Kind.OS)])
        self._save_sides(gpu, api, nvtx, os_calls)
        unions = self._unions(gpu)
        self._save_names()
        tracks, samples = counters.columns(counters.usable(capture.counters, capture.notes))
        for name, column in samples.items():
            self._save(name, column)
        self._save_meta(gpu, unions, tracks)

    def _by_lane(self, table: Table, key: tuple[str, ...]) -> Table:
        """The table sorted by lane, then start, longer first; with ``lane_first``: each lane's first row."""
        table = dict(table)
        if "range_style" in key:
            table["range_style"] = (table["style"] == NVTX_START_END).astype(np.int64)
        order, lane_first = orders.by_lane(table["start"], table["end"], [table[k] for k in key])
        return {name: column[order] for name, column in table.items()} | {"lane_first": lane_first}

    def _nest(self, nvtx: Table) -> None:
        nvtx["parent"] = np.full(len(nvtx["start"]), -1, np.int32)
        nvtx["depth"] = np.zeros(len(nvtx["start"]), np.int32)
        nvtx["nested"] = nvtx["range_style"] == 0
        for low, high in lane_bounds(nvtx):
            if nvtx["nested"][low]:
                depth = lanes.nesting_depth(nvtx["start"][low:high], nvtx["end"][low:high])
                nvtx["depth"][low:high] = depth
                parent = lanes.parents(depth)
                nvtx["parent"][low:high] = np.where(parent >= 0, parent + low, -1)

    def _ranges_of_gpu(self, gpu: Table, api: Table, nvtx: Table) -> Column:
        result = np.full(len(gpu["start"]), -1, np.int64)
        launched = np.flatnonzero(gpu["launch"] >= 0)
        calls = gpu["launch"][launched]
        result[launched] = links.ranges_of(api["start"][calls], api["thread"][calls], nvtx)
        return result

    def _events(self, tables: list[tuple[Table, Kind | None]]) -> None:
        """All events by (row, start); each side table learns its events' ids."""
        parts: dict[str, list[Column]] = {"start": [], "end": [], "name": [], "kind": [], "side": []}
        first = 0
        for table, kind in tables:
            table["event"] = np.empty(len(table["start"]), np.int64)
            for low, high in lane_bounds(table):
                order = self._lane(table, kind, low, high, first)
                table["event"][low + order] = first + np.arange(len(order))
                first += len(order)
                for name in ("start", "end", "name"):
                    parts[name].append(table[name][low:high][order])
                parts["kind"].append(
                    table["kind"][low:high][order] if kind is None else np.full(len(order), kind, np.uint8)
                )
                parts["side"].append(low + order)
        kinds = {"start": np.int64, "end": np.int64, "name": np.int32, "kind": np.uint8, "side": np.int32}
        columns = {n: np.concatenate([*parts[n], np.empty(0, k)]).astype(k, copy=False) for n, k in kinds.items()}
        columns["covered"] = np.concatenate([[0], np.cumsum(columns["end"] - columns["start"])])
        self._save("grid", self._grids(columns))
        for name, column in columns.items():
            self._save(name, column)

    def _grids(self, columns: dict[str, Column]) -> Column:
        """Totals of ``covered`` at evenly spaced times of each row; the rows learn where theirs are."""
        parts: list[Column] = [np.empty(0, np.int64)]
        at = 0
        for index, row in enumerate(self.rows):
            steps = (row.last - row.first) // EVENTS_A_STEP
            if row.crowded or steps < 2:
                continue
            start, end = (columns[name][row.first : row.last] for name in ("start", "end"))
            step_ns = int(-((start[0] - end[-1]) // steps)) or 1
            times = start[0] + step_ns * np.arange(steps + 1)
            parts.append(lanes.covered(start, end, columns["covered"][row.first : row.last + 1], times))
            self.rows[index] = replace(row, grid_first=at, grid_points=steps + 1, grid_step_ns=step_ns)
            at += steps + 1
        return np.concatenate(parts)

    def _lane(self, table: Table, kind: Kind | None, low: int, high: int, first: int) -> Column:
        """Split one lane into rows; returns the order of its events by (row, start)."""
        lane = self._describe(table, kind, low)
        self.lanes.append(lane)
        depth = table["depth"][low:high] if kind == Kind.NVTX and table["nested"][low] else None
        level = lanes.levels(table["start"][low:high], table["end"][low:high], depth)
        level = np.minimum(level, lanes.MAX_LEVELS - 1)
        order = orders.by_small(level)
        counts = np.bincount(level)
        for number, count in enumerate(counts.tolist()):
            crowded = number == lanes.MAX_LEVELS - 1
            self.rows.append(Row(len(self.lanes) - 1, number, first, first + count, crowded))
            first += count
        return order

    def _describe(self, table: Table, kind: Kind | None, at: int) -> Lane:
        if kind is None:
            device, stream, process = (int(table[k][at]) for k in ("device", "stream", "process"))
            return Lane("gpu", f"GPU {device} · stream {stream}{self._process(process)}", device, stream)
        if kind == Kind.SYNC:
            return Lane("sync", f"Synchronisation{self._process(int(table['process'][at]))}")
        thread = int(table["thread"][at])
        label = self.capture.thread_labels.get(thread, f"thread {thread}")
        if kind == Kind.API:
            return Lane("api", f"{self.capture.api_word} · {label}")
        if kind == Kind.OS:
            return Lane("os", f"OS calls · {label}")
        domain = int(table["domain"][at])
        words = self.capture.domain_names.get(domain, f"domain {domain}" if domain else "")
        start_end = ", start/end" if table["range_style"][at] else ""
        return Lane("nvtx", f"{self.capture.range_word}{' ' + words if words else ''}{start_end} · {label}")

    def _process(self, process: int) -> str:
        labels = self.capture.process_labels
        return f" · {labels.get(process, process)}" if len(labels) > 1 else ""

    def _save_sides(self, gpu: Table, api: Table, nvtx: Table, os_calls: Table) -> None:
        skipped = {"start", "end", "name", "kind", "lane_first", "correlation", "range_style", "depth"}
        for prefix, table in (("gpu", gpu), ("api", api), ("nvtx", nvtx), ("os", os_calls)):
            for name, column in table.items():
                if name not in skipped:
                    self._save(f"{prefix}_{name}", column.astype(np.int32) if name in SMALL else column)

    def _unions(self, gpu: Table) -> list[dict[str, Any]]:
        """Busy intervals of each GPU (over all its streams and processes), one after another in two columns."""
        order = np.argsort(gpu["start"], kind="stable")
        device_of = gpu["device"][order]
        starts, ends, devices = [], [], []
        first = 0
        for device in orders.codes(device_of)[0].tolist():
            mine = order[device_of == device]
            begin, stop = lanes.union(gpu["start"][mine], gpu["end"][mine])
            starts.append(begin)
            ends.append(stop)
            devices.append(
                {
                    "id": device,
                    "name": self.capture.device_names.get(device, ""),
                    "facts": self.capture.device_facts.get(device, {}),
                    "first": first,
                    "last": first + len(begin),
                    "events": len(mine),
                    "start_ns": int(begin[0]),
                    "end_ns": int(stop[-1]),
                    "busy_ns": int((stop - begin).sum()),
                }
            )
            first += len(begin)
        self._save("busy_start", np.concatenate([*starts, np.empty(0, np.int64)]))
        self._save("busy_end", np.concatenate([*ends, np.empty(0, np.int64)]))
        return devices

    def _save_names(self) -> None:
        texts = [text.encode() for text in self.capture.names.texts]
        self._save("name_offsets", np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64))
        (self.folder / "names.bin").write_bytes(b"".join(texts))

    def _save_meta(self, gpu: Table, devices: list[dict[str, Any]], tracks: list[counters.Track]) -> None:
        capture = self.capture
        tables = [t for t in (capture.gpu, capture.api, capture.nvtx, capture.sync, capture.os) if len(t["start"])]
        meta = {
            "format": capture.format,
            "producer": capture.producer,
            "schema": capture.schema,
            "start_ns": min((int(t["start"].min()) for t in tables), default=0),
            "end_ns": max((int(t["end"].max()) for t in tables), default=0),
            "events": {kind.name.lower(): int((gpu["kind"] == kind).sum()) for kind in GPU_KINDS}
            | {
                "api": len(capture.api["start"]),
                "nvtx": len(capture.nvtx["start"]),
                "sync": len(capture.sync["start"]),
                "os": len(capture.os["start"]),
            },
            "devices": devices,
            "lanes": [asdict(lane) for lane in self.lanes],
            "rows": [asdict(row) for row in self.rows],
            "counters": [asdict(track) for track in tracks],
            "not_captured": capture.not_captured,
            "notes": capture.notes,
            "source_rows": capture.counts,
        }
        (self.folder / "meta.json").write_text(json.dumps(meta, ensure_ascii=False))

    def _save(self, name: str, column: Column) -> None:
        np.save(self.folder / f"{name}.npy", np.ascontiguousarray(column))


SMALL = {"launch", "nvtx", "parent", "event"}
"""Indices: below 2^31, since an import is bounded at 60 million events."""
