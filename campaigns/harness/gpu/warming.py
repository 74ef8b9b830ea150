"""What is done around a timing session: its processes are made ready beside other work, and give back what they took."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

from ..problem import Workload
from .bench import GpuBench
from .runner import COMPILE_LIMIT_S, PRIME, GpuRunner


class Warming:
    """Runners that load and compile while something else is done with the GPU: one thread each."""

    def __init__(self, bench: GpuBench, runners: Sequence[GpuRunner], workloads: Sequence[Workload]) -> None:
        self.failures: dict[str, BaseException] = {}
        scales = {w.name: bench.scales_of(w) for w in workloads}
        self.threads = [
            threading.Thread(target=self._warm, args=(runner, workloads, scales, bench), daemon=True)
            for runner in runners
        ]
        for thread in self.threads:
            thread.start()

    def _warm(
        self, runner: GpuRunner, workloads: Sequence[Workload], scales: dict[str, dict[str, float]], bench: GpuBench
    ) -> None:
        try:
            runner.load()
            for workload in workloads:
                slot = f"{workload.name}/{PRIME}"
                runner.make_slots(workload, [slot])
                runner.renew({slot: bench.draw()}, [slot], scales[workload.name])
                runner.call([slot], COMPILE_LIMIT_S)
        except BaseException as error:
            self.failures[runner.who] = error

    def wait(self) -> None:
        """Raises what the first of them failed with."""
        for thread in self.threads:
            thread.join()
        for error in self.failures.values():
            raise error


@contextlib.contextmanager
def dropped(runners: Sequence[GpuRunner], workloads: Sequence[Workload]) -> Iterator[None]:
    """Give back what a session took in runners that outlive it."""
    try:
        yield
    finally:
        for runner in runners:
            if not runner.channel.closed:
                for workload in workloads:
                    runner.drop(workload)
