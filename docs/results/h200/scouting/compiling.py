"""Compiling points without a GPU, in processes of their own."""

from __future__ import annotations

import multiprocessing
import queue
import time
from pathlib import Path
from typing import Any

from scouting.points import CANDIDATES, Point, points, problem_of, runner, shape, variant, workloads


def pretend_gpu() -> None:
    """Triton compiles for sm_90 in this process and launches nothing."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime.jit import JITFunction

    class Target:
        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("meta")

    triton.runtime.driver.set_active(Target())

    def compiled(self: Any, grid: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            kernel = self.run(*args, grid=grid, warmup=True, **options)
            COMPILED.append(kernel)
            return kernel

        return run

    JITFunction.__getitem__ = compiled


COMPILED: list[Any] = []


def compile_point(point: Point, folder: str) -> tuple[Point, str, list[tuple[str, int]]]:
    """What went wrong, or an empty text; names and shared memory (bytes) of the kernels."""
    import torch

    problem, file, values, name = point
    COMPILED.clear()
    try:
        spec = problem_of(problem)
        axes = workloads(spec)[name]["axes"]
        kinds = {"dtype": torch.bfloat16, "int32": torch.int32, "int64": torch.int64, "float32": torch.float32}
        tensors = [
            torch.empty(shape(t["shape"], axes), dtype=kinds[t["dtype"]], device="meta")
            for t in (*spec["inputs"], *spec["outputs"])
        ]
        path = variant(CANDIDATES / problem / file, dict(values), Path(folder))
        if path.suffix == ".py":
            runner(path, axes)(*tensors)
    except Exception as error:
        return point, f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}", []
    return point, "", [(kernel.metadata.name, int(kernel.metadata.shared)) for kernel in COMPILED]


def compile_worker(todo: Any, done: Any, folder: str, deadline: float) -> None:
    pretend_gpu()
    while time.time() < deadline:
        try:
            point = todo.get(timeout=1)
        except queue.Empty:
            continue
        if point is None:
            return
        done.put(compile_point(point, folder))


def compile_only(work: Path, only: list[str], files: list[str], workers: int) -> None:
    """Every point, here, without a GPU: what does not compile, and what takes more shared memory than there is."""
    folder = work / "variants"
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=pretend_gpu) as pool:
        tasks = [(point, str(folder)) for point in points(only, files)]
        print(len(tasks), "points", flush=True)
        for number, (point, failure, kernels) in enumerate(pool.imap(unpacked, tasks)):
            used = " ".join(f"{name}:{shared >> 10}K" for name, shared in kernels)
            large = any(shared > 232448 for _, shared in kernels)
            note = f"FAILED {failure}" if failure else "TOO LARGE" if large else ""
            print(f"{number:>4} {point[0]} {point[1][:2]} {dict(point[2])} {point[3]}  {used} {note}", flush=True)


def unpacked(task: tuple[Point, str]) -> tuple[Point, str, list[tuple[str, int]]]:
    return compile_point(*task)
