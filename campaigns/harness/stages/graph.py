"""Step 5, on a GPU: one call as a CUDA graph, replayed on new values in the same memory, then on other memory.

Failing to be captured is a failure, with its reason: a kernel that forces CUDA graphs off can make a model 20 times slower.
"""

from __future__ import annotations

from typing import Any

from ..errors import CandidateFailure
from ..gpu.runner import COMPILE_LIMIT_S, GpuRunner
from ..gpu.work import total_bytes
from ..problem import Workload
from .base import Evaluation

REPLAYS = 3
LARGE_BYTES = 1 << 30
BLOCK_LIMIT_S = 30.0
NOTHING = (
    "one call puts nothing into a CUDA graph: it launches on another stream than the caller's "
    "(in a torch extension at::cuda::getCurrentCUDAStream()), or not at all"
)
REASONS = (
    ("synchroniz", "it waits for the device (an .item(), a copy to the host, a synchronize)"),
    ("unjoined", "it leaves work on another stream that is not joined again"),
    (
        "cudaErrorStreamCaptureUnsupported",
        "it does something that a CUDA graph cannot hold: it waits for the device, or allocates",
    ),
    (
        "operation not permitted when stream is capturing",
        "it waits for the device, or copies to the host, during the call",
    ),
    (
        "operation failed due to a previous error during capture",
        "it did something during the call that a CUDA graph cannot hold",
    ),
)


class Graph:
    name = "graph"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        nodes: dict[str, int | None] = {}
        chosen = [w for w in evaluation.workloads if total_bytes(evaluation.problem, w) <= LARGE_BYTES]
        for workload in chosen:
            evaluation.checkpoint()
            nodes[workload.name] = self.check(evaluation, evaluation.checkers[workload.name], workload)
        for runner in set(evaluation.checkers.values()):
            evaluation.close_gpu(runner)
        evaluation.checkers.clear()
        return f"captured and replayed on {len(chosen)} workloads, on new values and on new memory", {"nodes": nodes}

    def check(self, evaluation: Evaluation, runner: GpuRunner, workload: Workload) -> int | None:
        same, other = (f"{workload.name}/{i}" for i in range(2))
        nodes = self.capture(runner, workload, same)
        if nodes == 0:
            raise CandidateFailure("incorrect", f"{workload.name}: {NOTHING}")
        for _ in range(REPLAYS):
            self.replay(evaluation, runner, workload, same)
        self.capture(runner, workload, other)
        self.replay(evaluation, runner, workload, other)
        return nodes

    def capture(self, runner: GpuRunner, workload: Workload, slot: str) -> int | None:
        try:
            return runner.capture(slot, [slot], COMPILE_LIMIT_S)
        except CandidateFailure as failure:
            if failure.outcome in ("timed_out", "out_of_memory") or runner.channel.closed:
                raise
            why = next((words for word, words in REASONS if word.lower() in failure.message.lower()), failure.message)
            text = f"{workload.name}: one call cannot be captured as a CUDA graph: {why}"
            raise CandidateFailure("launch_failed", text) from failure

    def replay(self, evaluation: Evaluation, runner: GpuRunner, workload: Workload, slot: str) -> None:
        bench = evaluation.on_gpu
        bench.renew(runner, workload, {slot: bench.draw()}, [slot])
        runner.block([slot], [], evaluation.block_limit_s(BLOCK_LIMIT_S))
        found = bench.check(runner, workload, slot).comparison
        if not found.passed:
            raise CandidateFailure(
                "incorrect",
                f"{workload.name}: replayed from its CUDA graph on new values it is wrong: {found.detail}",
            )
