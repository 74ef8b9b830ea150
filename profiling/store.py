"""A profile as memory-mapped NumPy columns, and the windows that the timeline draws.

Layout of a store folder
    meta.json      lanes, rows, devices, what was not captured
    start end name kind side (.npy)   all events, sorted by (row, start); ``side`` indexes the event's side table
    covered.npy    running total of the durations before each event: the busy share of any bucket is two look-ups
    grid.npy       the same total at evenly spaced times of each row, for windows of many events a pixel
    gpu_* api_* nvtx_* os_*           side tables: launch, NVTX range, grid, block …
    busy_start busy_end               busy intervals per device
    counter_time counter_value counter_area   samples of counters, one track after another
    names.bin name_offsets.npy        strings

A **row** is one sub-lane of a lane: its events never overlap, so both its starts and its ends ascend, a window is two
binary searches, and the exact busy share of a bucket is the difference of ``covered`` at its borders. That serves as
index pyramid: a window costs pixels × log(events), whatever the zoom, and reads no event that it does not draw. Where a
pixel is at least GRID_PIXEL grid steps wide, its borders are moved to the grid (by an eighth of a pixel at most) and
the total is read there, without a search.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from profiling import counters, lanes
from profiling.events import Column, Kind
from profiling.kernel_names import unmangled

STORE_VERSION = 1
MAX_BARS = 1500
MAX_HEAT_CELLS = 60_000
MAX_NAME_CHARS = 80
MAX_NAMES_CHARS = 24_000
KEPT_NAMES = 1 << 16
EVENTS_A_STEP, GRID_PIXEL = 2, 4
"""A row's grid has one step for so many events; it serves windows whose pixels are so many steps wide."""


@dataclass(frozen=True)
class Lane:
    """What a lane shows: ``kind`` is gpu, nvtx, api, os or sync."""

    kind: str
    label: str
    device: int = -1
    stream: int = -1


@dataclass(frozen=True)
class Row:
    """A sub-lane: events ``first`` to ``last`` (exclusive). ``crowded``: the last one, where events may overlap.

    Its grid: ``grid_points`` totals from ``grid_first`` on, ``grid_step_ns`` apart, the first at the row's first start.
    """

    lane: int
    level: int
    first: int
    last: int
    crowded: bool = False
    grid_first: int = 0
    grid_points: int = 0
    grid_step_ns: int = 0


class Store:
    """Read access to a store folder. Opening costs one small file; columns are mapped when first used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_text())
        self.lanes = [Lane(**lane) for lane in self.meta["lanes"]]
        self.rows = [Row(**row) for row in self.meta["rows"]]
        self.counters = [counters.Track(**track) for track in self.meta.get("counters", ())]
        self._names: dict[int, str] = {}
        self._columns: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        if name not in self._columns:
            path = self.folder / f"{name}.npy"
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            self._columns[name] = np.asarray(mapped) if mapped.size else np.array(mapped)
        return self._columns[name]

    @cached_property
    def _name_bytes(self) -> Column:
        path = self.folder / "names.bin"
        return np.asarray(np.memmap(path, np.uint8, "r")) if path.stat().st_size else np.empty(0, np.uint8)

    def name(self, name_id: int) -> str:
        found = self._names.get(name_id)
        if found is None:
            low, high = self.column("name_offsets")[name_id : name_id + 2].tolist()
            found = self._name_bytes[low:high].tobytes().decode()
            if len(self._names) < KEPT_NAMES:
                self._names[name_id] = found
        return found

    def names_matching(self, text: str) -> Column:
        """Ids of the names that contain ``text``; ASCII letters match in either case."""
        wanted = text.encode().lower()
        offsets = self.column("name_offsets")
        raw = bytes(self._name_bytes).lower()
        found, at = [], raw.find(wanted)
        while at >= 0 and wanted:
            index = int(np.searchsorted(offsets, at, "right")) - 1
            if at + len(wanted) <= offsets[index + 1]:
                found.append(index)
                at = int(offsets[index + 1]) - 1
            at = raw.find(wanted, at + 1)
        return np.array(found, np.int64)

    def window_json(self, lo: int, hi: int, pixels: int) -> bytes:
        """``window`` as compact JSON."""
        return msgspec.json.encode(self.window(lo, hi, pixels))

    def window(self, lo: int, hi: int, pixels: int) -> dict[str, Any]:
        """What a view of [lo, hi] ns that is ``pixels`` wide shows.

        Rows with few events come as bars (at most MAX_BARS in all), the others as busy share per bucket: uint8, 255 is
        always busy, base64. Bar times are relative to ``lo``. Found by overlap: a parent that began earlier is there.
        Counters follow the rows, numbered on, with their mean ``level`` per bucket (``counters.window``).
        """
        bounds = [self._bounds(row, lo, hi) for row in self.rows]
        left, rows, used = MAX_BARS, [], set[int]()
        as_bars = set[int]()
        for index in sorted(range(len(bounds)), key=lambda i: bounds[i][1] - bounds[i][0]):
            count = bounds[index][1] - bounds[index][0]
            if count > left:
                break
            as_bars.add(index)
            left -= count
        heated = len(bounds) - len(as_bars) + len(self.counters)
        buckets = max(1, min(pixels, MAX_HEAT_CELLS // max(heated, 1), hi - lo))
        edges = np.array([lo + (hi - lo) * i // buckets for i in range(buckets + 1)], dtype=np.int64)
        for index, (first, last) in enumerate(bounds):
            if last <= first:
                continue
            row: dict[str, Any] = {"row": index, "count": last - first}
            if index in as_bars:
                row |= self._bars(self.rows[index], first, last, lo, hi, used)
            else:
                row["busy"] = self._heat(self.rows[index], first, last, edges)
            rows.append(row)
        rows += self._levels(edges)
        return {"lo": lo, "hi": hi, "buckets": buckets, "rows": rows, "names": self._short_names(used)}

    def _levels(self, edges: Column) -> list[dict[str, Any]]:
        found = []
        for number, track in enumerate(self.counters, len(self.rows)):
            part = slice(track.first, track.last)
            time, value, area = (self.column(f"counter_{name}")[part] for name in ("time", "value", "area"))
            if level := counters.window(track, time, value, area, edges):
                found.append({"row": number} | level)
        return found

    def _bounds(self, row: Row, lo: int, hi: int) -> tuple[int, int]:
        """Events of the row that overlap [lo, hi]."""
        start, end = self.column("start"), self.column("end")
        last = row.first + int(start[row.first : row.last].searchsorted(hi, "right"))
        if row.crowded:
            reach = np.maximum.accumulate(end[row.first : last]) if last > row.first else end[:0]
            return row.first + int(reach.searchsorted(lo, "left")), last
        return row.first + int(end[row.first : last].searchsorted(lo, "left")), last

    def _bars(self, row: Row, first: int, last: int, lo: int, hi: int, used: set[int]) -> dict[str, Any]:
        start, end = self.column("start")[first:last], self.column("end")[first:last]
        names = self.column("name")[first:last].tolist()
        used.update(names)
        return {
            "first": first,
            "start": (start - lo).tolist(),
            "length": (end - start).tolist(),
            "name": names,
            "kind": self.column("kind")[first:last].tolist() if self.lanes[row.lane].kind == "gpu" else [],
        }

    def _heat(self, row: Row, first: int, last: int, edges: Column) -> str:
        if row.grid_points and edges[-1] - edges[0] >= GRID_PIXEL * row.grid_step_ns * (len(edges) - 1):
            return shares(*self._on_grid(row, edges))
        start, end = self.column("start")[first:last], self.column("end")[first:last]
        cumulative = self.column("covered")[first : last + 1]
        if row.crowded:
            start, end = lanes.union(start, end)
            cumulative = np.concatenate([[0], np.cumsum(end - start)])
        return shares(lanes.covered(start, end, cumulative, edges), edges)

    def _on_grid(self, row: Row, edges: Column) -> tuple[Column, Column]:
        """Totals at the grid's times next to the edges, and those times."""
        origin = int(self.column("start")[row.first])
        place = (edges - origin + row.grid_step_ns // 2) // row.grid_step_ns
        grid = self.column("grid")[row.grid_first : row.grid_first + row.grid_points]
        return grid[np.clip(place, 0, row.grid_points - 1)], origin + place * row.grid_step_ns

    def _short_names(self, used: set[int]) -> dict[int, str]:
        """Names for the bars, cut so that no window outgrows its payload; details give the full name."""
        budget = max(12, min(MAX_NAME_CHARS, MAX_NAMES_CHARS // max(len(used), 1)))
        names = {i: unmangled(self.name(i)) for i in sorted(used)}
        return {i: name if len(name) <= budget else name[: budget - 1] + "…" for i, name in names.items()}

    def find(self, name_ids: Column, after_ns: int, backwards: bool = False) -> int | None:
        """The event with one of the names that starts next after (or before) a time; wraps around."""
        hits = np.flatnonzero(np.isin(self.column("name"), name_ids))
        if not len(hits):
            return None
        order = hits[np.lexsort((hits, self.column("start")[hits]))]
        starts = self.column("start")[order]
        before = int((starts < after_ns).sum()) if backwards else int((starts <= after_ns).sum())
        place = before - int(backwards)
        return int(order[place % len(order)])

    def row_of(self, event: int) -> int:
        return int(np.searchsorted([row.last for row in self.rows], event, "right"))

    def is_gpu(self, event: int) -> bool:
        return int(self.column("kind")[event]) <= Kind.GRAPH


def shares(totals: Column, edges: Column) -> str:
    """Busy share of each bucket as base64 of bytes: 0 for nothing, at least 1 for anything, 255 for always."""
    busy = np.diff(totals) / np.maximum(np.diff(edges), 1)
    return base64.b64encode(np.ceil(np.clip(busy, 0, 1) * 255).astype(np.uint8).tobytes()).decode()
