"""The device under a runner: what is called on it is looked up before foreign code is loaded.

``Cpu`` rehearses the same conversation without a GPU: a block is then a loop of calls, and no graph is captured.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from collections.abc import Callable
from typing import Any


class Graph:
    """Something that can be replayed. ``nodes`` is how many nodes the device executes, None where that is unknown."""

    def __init__(self, replay: Callable[[], None], nodes: int | None, held: Any = None) -> None:
        self.replay, self.nodes, self.held = replay, nodes, held


class Cuda:
    name = "cuda"

    def __init__(self) -> None:
        import torch

        torch.cuda.init()
        torch.empty(1, device="cuda")
        self.torch = torch
        self.sync = torch._C._cuda_synchronize
        self.stream = torch.cuda.Stream()
        self._graph = torch.cuda.CUDAGraph
        self._replay = torch._C._CUDAGraph.replay
        self._record = torch._C._CudaEventBase.record
        self._current = torch.cuda.current_stream
        self._begin, self._end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._default = self._current()
        self._empty_cache = torch.cuda.empty_cache
        self._sum = torch.sum
        cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
        self._scratch = torch.zeros(max(1, 2 * cache // 4), dtype=torch.float32, device="cuda")
        self._total = torch.zeros((), dtype=torch.float32, device="cuda")
        self._mark(self._begin)
        self._mark(self._end)  # the first record of an event makes it
        self.sync()

    def facts(self) -> dict[str, Any]:
        found = self.torch.cuda.get_device_properties(0)
        return {
            "name": found.name,
            "capability": [found.major, found.minor],
            "l2_bytes": getattr(found, "L2_cache_size", 0),
            "memory_bytes": found.total_memory,
            "processors": found.multi_processor_count,
            "cuda": self.torch.version.cuda,
            "torch": self.torch.__version__,
        }

    def _mark(self, event: Any) -> None:
        self._record(event, self._default)

    def stream_pointer(self) -> int:
        return int(self._current().cuda_stream)

    def flush(self) -> None:
        """Read twice the second-level cache: every block starts from the same, clean state of it."""
        self._sum(self._scratch, (0,), out=self._total)
        self.sync()

    def timed(self, work: Callable[[], None]) -> float:
        """Nanoseconds between two events around the work, all of which is over when it returns."""
        self._mark(self._begin)
        work()
        self._mark(self._end)
        self.sync()
        return float(self._begin.elapsed_time(self._end)) * 1e6

    def capture(self, work: Callable[[], None]) -> Graph:
        """The work as a CUDA graph. Raises whatever the driver says against it."""
        self.sync()
        graph = self._graph(keep_graph=True)
        with self.torch.cuda.stream(self.stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                with contextlib.suppress(Exception):
                    graph.capture_end()
                raise
            graph.capture_end()
        graph.instantiate()
        self.sync()
        replay = self._replay
        return Graph(lambda: replay(graph), count_nodes(int(graph.raw_cuda_graph())), graph)

    def release(self) -> None:
        gc.collect()
        self._empty_cache()

    def limit_memory(self, share: float) -> None:
        self.torch.cuda.set_per_process_memory_fraction(share)


class Cpu:
    name = "cpu"

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch

    def facts(self) -> dict[str, Any]:
        return {
            "name": "rehearsal on a CPU", "capability": [0, 0], "l2_bytes": 1 << 20, "memory_bytes": 1 << 30,
            "processors": 1, "cuda": None, "torch": self.torch.__version__,
        }  # fmt: skip

    def sync(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def stream_pointer(self) -> int:
        return 0

    def timed(self, work: Callable[[], None]) -> float:
        began_ns = time.perf_counter_ns()
        work()
        return float(time.perf_counter_ns() - began_ns)

    def capture(self, work: Callable[[], None]) -> Graph:
        return Graph(work, None)

    def release(self) -> None:
        gc.collect()

    def limit_memory(self, share: float) -> None:
        pass


def count_nodes(graph: int) -> int | None:
    """cuGraphGetNodes, by its number only."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_size_t(0)
    if driver.cuGraphGetNodes(ctypes.c_void_p(graph), None, ctypes.byref(count)):
        return None
    return int(count.value)


def open_device(name: str) -> Cuda | Cpu:
    return Cuda() if name == "cuda" else Cpu()
