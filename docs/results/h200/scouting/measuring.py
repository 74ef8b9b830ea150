"""Measuring on the GPU: right or not, and the median time of a graph of calls over rotated inputs."""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grids import GRIDS

from scouting.points import (
    CANDIDATES,
    PROBLEMS,
    module,
    problem_of,
    runner,
    shape,
    size_bytes,
    told,
    variant,
    workloads,
)

L2_BYTES = 60 << 20
DEVICE = "cuda"


class Gpu:
    """Inputs, references and timings of the workloads, kept while they fit."""

    def __init__(self, work: Path) -> None:
        import torch

        self.torch = torch
        self.lock = (work / "gpu.lock").open("w")
        self.kept: dict[tuple[str, str], tuple[list[list[Any]], dict[str, Any]]] = {}

    def sets(self, problem: str, name: str) -> tuple[list[list[Any]], dict[str, Any]]:
        """Arguments of several calls on different values, more than the second-level cache holds, and references."""
        key = (problem, name)
        if key not in self.kept:
            if self.torch.cuda.mem_get_info()[0] < 50 << 30:
                self.kept.clear()
                self.torch.cuda.empty_cache()
            self.kept[key] = self.make(problem, name)
        return self.kept[key]

    def make(self, problem: str, name: str) -> tuple[list[list[Any]], dict[str, Any]]:
        torch = self.torch
        spec = problem_of(problem)
        workload = workloads(spec)[name]
        axes = workload["axes"]
        inputs = module(PROBLEMS / problem / "inputs.py", "problem_inputs")
        generator = torch.Generator(DEVICE).manual_seed(20261130)
        count = min(16, max(1, -(-3 * L2_BYTES // size_bytes(problem, workload))))
        made = []
        for _ in range(count):
            drawn = inputs.make_inputs(axes, generator, DEVICE, torch.bfloat16)
            outs = [
                torch.full(shape(t["shape"], axes), float("nan"), dtype=torch.bfloat16, device=DEVICE)
                for t in spec["outputs"]
            ]
            made.append([*(drawn[t["name"]] for t in spec["inputs"]), *outs])
        reference = module(PROBLEMS / problem / "reference.py", "problem_reference").reference
        named = dict(zip((t["name"] for t in spec["inputs"]), made[0], strict=False))
        return made, {k: v.float() for k, v in reference(named, axes).items()}

    def error(self, problem: str, name: str, run: Callable[..., None]) -> float:
        """The worst |out − ref| over what is allowed; at most 1 is right, NaN and unwritten values are infinite."""
        torch = self.torch
        sets, references = self.sets(problem, name)
        spec = problem_of(problem)
        allowed = spec["tolerance"]["bfloat16"]
        outs = sets[0][len(spec["inputs"]) :]
        for out in outs:
            out.fill_(float("nan"))
        run(*sets[0])
        torch.cuda.synchronize()
        worst = 0.0
        for out, ref in zip(outs, references.values(), strict=True):
            rms = ref.square().mean().sqrt()
            off = (out.float() - ref).abs_().div_(ref.abs().add_(rms).mul_(allowed).clamp_min_(1e-30)).max().item()
            worst = max(worst, off if off == off else float("inf"))
        return worst

    def time_us(self, problem: str, name: str, run: Callable[..., None]) -> float:
        torch = self.torch
        sets, _ = self.sets(problem, name)
        run(*sets[0])  # compiles
        torch.cuda.synchronize()
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            for call in sets[:3]:
                run(*call)
            torch.cuda.synchronize()
            begin.record()
            for call in sets[:3]:
                run(*call)
            end.record()
            torch.cuda.synchronize()
            once_us = begin.elapsed_time(end) * 1e3 / len(sets[:3])
            calls = max(len(sets), min(32, int(600 / once_us) + 1))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for number in range(calls):
                    run(*sets[number % len(sets)])
            for _ in range(2):
                graph.replay()
            times = []
            for _ in range(15):
                begin.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end) * 1e3 / calls)
            return statistics.median(times)
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)


def measure_baselines(out: Path, work: Path, only: list[str], deadline: float) -> None:
    """Eager and torch.compile, graphed, into a file of their own; the visible workloads."""
    gpu = Gpu(work)
    found: list[dict[str, Any]] = []
    for problem in GRIDS:
        if only and problem not in only:
            continue
        for baseline in ("compile", "eager"):
            for name, workload in workloads(problem_of(problem)).items():
                if workload.get("hidden") or time.time() > deadline:
                    continue
                try:
                    run = module(PROBLEMS / problem / "baselines" / f"{baseline}.py", "problem_baseline").run
                    with gpu.torch.no_grad():
                        us = gpu.time_us(problem, name, run)
                    found.append({"problem": problem, "workload": name, "baseline": baseline, "us": us})
                except Exception as error:
                    gpu.torch.cuda.synchronize()
                    found.append(
                        {"problem": problem, "workload": name, "baseline": baseline, "error": str(error)[-300:]}
                    )
                (out / "baselines.json").write_text(json.dumps(found))
            gpu.kept.clear()
            gpu.torch.cuda.empty_cache()


def measure_worker(compiled: Any, results: Any, work: str, folder: str) -> None:
    """Measure what was compiled, point by point; ends with the point that cost it the device."""
    gpu = Gpu(Path(work))
    while True:
        point, failure, kernels = compiled.get()
        problem, file, values, name = point
        row: dict[str, Any] = {**told(point), "kernels": kernels}
        lost = False
        if failure:
            row["failure"] = failure
        else:
            results.put({"begun": point})
            try:
                workload = workloads(problem_of(problem))[name]
                run = runner(variant(CANDIDATES / problem / file, dict(values), Path(folder)), workload["axes"])
                row["error"] = gpu.error(problem, name, run)
                if values or not workload.get("hidden"):
                    row["us"] = gpu.time_us(problem, name, run)
            except Exception as error:
                row["failure"] = f"{type(error).__name__}: {str(error)[-200:]}"
                try:
                    gpu.torch.cuda.synchronize()
                except Exception:
                    lost = True
                    row["failure"] = f"the device was lost: {row['failure']}"
        results.put(row)
        if lost:
            results.close()
            results.join_thread()
            os._exit(1)
