"""A store seen as tables that findings ask questions of: GPU events by start, calls, NVTX ranges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from profiling import lanes
from profiling.events import Column, Kind, Table
from profiling.store import Store

NOT_A_CALL = -1


class Trace:
    """Tables are dicts of equally long arrays. Times in ns."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def _side(self, prefix: str, columns: tuple[str, ...]) -> Table:
        event = self.store.column(f"{prefix}_event")
        shared = {name: self.store.column(name)[event] for name in ("start", "end", "name")}
        return shared | {name: self.store.column(f"{prefix}_{name}") for name in columns} | {"event": event}

    @cached_property
    def gpu(self) -> Table:
        """Every kernel, copy, memset and opaque graph, by start; ``launch`` and ``nvtx`` index the other tables."""
        where = ("device", "process", "stream", "launch", "nvtx", "graph_node")
        table = self._side("gpu", (*where, "src_kind", "dst_kind", "bytes", "full_name"))
        table["kind"] = self.store.column("kind")[table["event"]]
        return {name: column[self._gpu_order] for name, column in table.items()}

    @cached_property
    def _gpu_order(self) -> Column:
        return np.argsort(self.store.column("start")[self.store.column("gpu_event")], kind="stable")

    @cached_property
    def shapes(self) -> Table:
        """Of each row of ``gpu``: grid, block, registers and shared memory, NOT_RECORDED where it has none."""
        named = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
        named += ["registers", "static_shared_bytes", "dynamic_shared_bytes"]
        return {name: self.store.column(f"gpu_{name}")[self._gpu_order] for name in named}

    @cached_property
    def api(self) -> Table:
        return self._side("api", ("thread",))

    @cached_property
    def os(self) -> Table:
        """Calls into the operating system's libraries."""
        return self._side("os", ("thread",))

    @cached_property
    def nvtx(self) -> Table:
        return self._side("nvtx", ("thread", "domain", "parent", "nested"))

    @property
    def devices(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.store.meta["devices"]
        return found

    @cached_property
    def span(self) -> tuple[int, int]:
        """First start to last end on the GPUs; of all events where no GPU event was captured."""
        if not self.devices:
            return self.store.meta["start_ns"], self.store.meta["end_ns"]
        return min(d["start_ns"] for d in self.devices), max(d["end_ns"] for d in self.devices)

    def busy(self, device: dict[str, Any]) -> tuple[Column, Column]:
        """The intervals in which the device does anything."""
        part = slice(device["first"], device["last"])
        return self.store.column("busy_start")[part], self.store.column("busy_end")[part]

    @cached_property
    def is_kernel(self) -> Column:
        return self.gpu["kind"] == Kind.KERNEL

    @cached_property
    def launched_alone(self) -> Column:
        """Kernels that a call of their own launched: not nodes of a graph."""
        return self.is_kernel & (self.gpu["graph_node"] <= 0)

    def call_words(self, index: int) -> str:
        return self.store.name(int(self.api["name"][index])) if index >= 0 else "an unrecorded call"

    def names_with(self, *parts: str) -> Column:
        """Ids of names that contain one of the parts."""
        return np.unique(np.concatenate([self.store.names_matching(part) for part in parts]))

    @cached_property
    def communication(self) -> Column:
        """Kernels of the collective libraries, by name."""
        names = self.names_with("nccl", "rccl", "nvshmem", "all_reduce", "allreduce", "all_gather", "reduce_scatter")
        return self.is_kernel & np.isin(self.gpu["name"], names)

    def exposed_ns(self, mask: Column) -> int:
        """Time in which a GPU runs events of the mask and nothing else, over all GPUs."""
        total = 0
        for device in self.devices:
            mine = self.gpu["device"] == device["id"]
            inside = lanes.union(self.gpu["start"][mine & mask], self.gpu["end"][mine & mask])
            others = lanes.union(self.gpu["start"][mine & ~mask], self.gpu["end"][mine & ~mask])
            length = int((inside[1] - inside[0]).sum())
            total += length - int(lanes.overlap_ns(*others, *inside).sum()) if len(inside[0]) else 0
        return total

    @cached_property
    def nvtx_totals(self) -> Table:
        """Per NVTX range, over all that was launched inside: GPU events, their time, first start, last end (ns)."""
        size = len(self.nvtx["start"])
        most = np.iinfo(np.int64).max
        result: Table = {
            "events": np.zeros(size, np.int64),
            "gpu_ns": np.zeros(size, np.int64),
            "first": np.full(size, most),
            "last": np.full(size, -most),
        }
        length = self.gpu["end"] - self.gpu["start"]
        rows = np.flatnonzero(self.gpu["nvtx"] >= 0)
        at = self.gpu["nvtx"][rows].astype(np.int64)
        np.add.at(result["events"], at, 1)
        np.add.at(result["gpu_ns"], at, length[rows])
        np.minimum.at(result["first"], at, self.gpu["start"][rows])
        np.maximum.at(result["last"], at, self.gpu["end"][rows])
        parent, depth = self.nvtx["parent"].astype(np.int64), self._roots_and_depths[1]
        order = np.argsort(-depth, kind="stable")
        for inner in np.split(
            order, np.flatnonzero(np.diff(depth[order])) + 1
        ):  # deepest first: all is in them by then
            above = parent[inner]
            if len(inner) and above[0] >= 0:
                np.add.at(result["events"], above, result["events"][inner])
                np.add.at(result["gpu_ns"], above, result["gpu_ns"][inner])
                np.minimum.at(result["first"], above, result["first"][inner])
                np.maximum.at(result["last"], above, result["last"][inner])
        return result

    @cached_property
    def _roots_and_depths(self) -> tuple[Column, Column]:
        """Per NVTX range its outermost range and the number of those around it, by jumps of doubling length: ranges may be
        nested as deep as there are ranges."""
        parent = self.nvtx["parent"].astype(np.int64)
        root = np.where(parent >= 0, parent, np.arange(len(parent)))
        depth = (parent >= 0).astype(np.int64)
        while depth[root].any():
            depth += depth[root]
            root = root[root]
        return root, depth

    @property
    def roots(self) -> Column:
        """The outermost range around each NVTX range."""
        return self._roots_and_depths[0]

    def root(self, nvtx: int) -> int:
        return int(self.roots[nvtx])

    def path(self, nvtx: int) -> list[str]:
        """Names from the outermost range to this one."""
        names: list[str] = []
        while nvtx >= 0:
            names.append(self.store.name(int(self.nvtx["name"][nvtx])))
            nvtx = int(self.nvtx["parent"][nvtx])
        return names[::-1]
