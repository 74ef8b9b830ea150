"""Rows of integers that grow: Python tuples while they come in, one compact array for each batch."""

from __future__ import annotations

import numpy as np

from profiling.events import Table


class Rows:
    """:param columns: names in the order of the tuples that ``add`` takes."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._fresh: list[tuple[int, ...]] = []
        self._packed: list[np.ndarray] = []
        self.add = self._fresh.append

    def __len__(self) -> int:
        return len(self._fresh) + sum(len(part) for part in self._packed)

    def pack(self) -> None:
        if self._fresh:
            self._packed.append(np.array(self._fresh, np.int64))
            self._fresh.clear()

    def table(self) -> Table:
        """The columns; empty where nothing was added. The rows are given up."""
        self.pack()
        if not self._packed:
            return {}
        whole = self._packed[0] if len(self._packed) == 1 else np.concatenate(self._packed)
        self._packed = []
        return {name: np.ascontiguousarray(whole[:, index]) for index, name in enumerate(self.columns)}
