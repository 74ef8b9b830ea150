"""Processes of variants that start beside each other, before it is their turn: compiling is most of a stack's time on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from campaigns.harness import cores
from campaigns.harness.gpu.runner import GpuRunner

from .variants import Variant

MOST = 12
"""At the same time: each holds a CUDA context and one set of inputs."""
Key = tuple[bool, int, tuple[str, ...], tuple[str, ...]]


def key_of(variant: Variant) -> Key:
    """What two variants have in common that may stand for one another."""
    return variant.compiled, variant.pieces, tuple(kernel.id for kernel in variant.kernels), variant.skipped


class Ahead:
    """``begin`` starts one, closing it again where it fails; it runs in threads."""

    def __init__(self, begin: Callable[[Variant], GpuRunner]) -> None:
        self.begin = begin
        self.pool = ThreadPoolExecutor(min(MOST, cores.count()), "stack")
        self.coming: dict[Key, Future[GpuRunner]] = {}

    def ask(self, variants: Iterable[Variant]) -> None:
        for variant in variants:
            if key_of(variant) not in self.coming:
                self.coming[key_of(variant)] = self.pool.submit(self.begin, variant)

    def take(self, variant: Variant) -> GpuRunner:
        """Its process, started now if nobody asked before. Raises what it failed with."""
        self.ask([variant])
        runner = self.coming.pop(key_of(variant)).result()
        runner.who = variant.who
        return runner

    def drop(self) -> None:
        """End those that nobody took; returns when none is starting any more."""
        for future in list(self.coming.values()):
            if not future.cancel() and future.exception() is None:
                future.result().close()
        self.coming.clear()

    def close(self) -> None:
        self.drop()
        self.pool.shutdown()
