"""A candidate in more processes, beside its correctness checks: one profiled, one with its kernels emptied, one where they fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..backends import Built
from ..errors import CandidateFailure, forged
from ..problem import Workload
from ..request import CandidateSource
from . import kernels
from .bench import GpuBench
from .runner import COMPILE_LIMIT_S, GpuRunner

LOOKS = 2
Start = Callable[[str, CandidateSource, Built], GpuRunner]


class Engaged:
    """Started at once; ``wait`` raises what went wrong. What an emptied kernel fails with is no failure."""

    def __init__(
        self,
        bench: GpuBench,
        start: Start,
        close: Callable[[GpuRunner], None],
        source: CandidateSource,
        built: Built,
        workloads: list[Workload],
    ) -> None:
        self.bench, self.end = bench, close
        self.workloads, self.workload = workloads, workloads[0]
        self.slot = f"{self.workload.name}/0"
        self.scales = {w.name: bench.scales_of(w) for w in workloads}
        self.profiled: list[dict[str, Any]] = []
        self.failure: BaseException | None = None
        self.profiling = start("candidate, profiled", source, built)
        self.twins: dict[str, GpuRunner] = {}
        """``empty`` and ``failing``: the candidate with other kernels' bodies."""
        self.ran: set[str] = set()
        for name, twin in twins_of(source).items():
            files = {path: text.encode() for path, text in twin.files.items()}
            self.twins[name] = start(f"candidate, its kernels {name}", twin, Built(files, built.entry))
        self.threads = [threading.Thread(target=self._profile, daemon=True)]
        for name, runner in self.twins.items():
            self.threads.append(threading.Thread(target=self._run_twin, args=(name, runner), daemon=True))
        for thread in self.threads:
            thread.start()

    def _call_once(self, runner: GpuRunner, workload: Workload) -> str:
        slot = f"{workload.name}/0"
        runner.make_slots(workload, [slot])
        runner.renew({slot: self.bench.draw()}, [slot], self.scales[workload.name])
        runner.call([slot], COMPILE_LIMIT_S)
        return slot

    def _profile(self) -> None:
        """One slot for each workload, called once, which compiles; then once more under the profiler. Where that saw nothing
        at all of a call, as when records are lost, it looks again."""
        try:
            self.profiling.load()
            calls = [self._call_once(self.profiling, workload) for workload in self.workloads]
            for _ in range(LOOKS):
                self.profiled = unpacked(calls, self.profiling.ask("profile", COMPILE_LIMIT_S, calls=calls))
                if self.bench.gpu.device != "cuda" or all(call["kernels"] for call in self.profiled):
                    break
        except BaseException as error:
            self.failure = error

    def _run_twin(self, name: str, runner: GpuRunner) -> None:
        try:
            runner.load()
            self._call_once(runner, self.workload)
            self.ran.add(name)
        except CandidateFailure:
            pass
        except BaseException as error:
            self.failure = self.failure or error

    def wait(self) -> None:
        for thread in self.threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        for runner in (self.profiling, *self.twins.values()):
            self.end(runner)


def unpacked(slots: Sequence[str], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """By slot, its kernels as ``{"kernel", "calls", "total_us", "streams"}``. Raises where it is no such answer."""
    try:
        return [
            {
                "slot": slot,
                "kernels": [
                    {
                        "kernel": str(answer["names"][at]),
                        "calls": int(n),
                        "total_us": float(us),
                        "streams": list(streams),
                    }
                    for at, n, us, streams in call
                ],
            }
            for slot, call in zip(slots, answer["calls"], strict=True)
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        raise forged("answered a request with something else") from None


def twins_of(source: CandidateSource) -> dict[str, CandidateSource]:
    """The same candidate with kernels that do nothing, and with kernels that fail where it could hide that."""
    if source.backend not in ("triton", "cutedsl"):
        return {}
    found = {"empty": kernels.emptied(source)}
    if (failing := kernels.failing(source)) is not None:
        found["failing"] = failing
    return found
