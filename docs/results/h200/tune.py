"""Scout for a GPU: which parameters of the candidates here are fast, and whether they are right.

    PYTHONUNBUFFERED=1 python3 docs/results/h200/tune.py --seconds 200 --out "$OUT"

Needs torch and Triton alone. Nothing that it says is a verdict: the harness judges (docs/harness.md). Kernels are compiled
by processes of their own while the GPU measures; eager and torch.compile are timed by another process. What is timed is a
CUDA graph of several calls over rotated inputs, the median of replays. ``--compile-only`` needs no GPU and says what each
kernel takes of registers and shared memory. ``--only`` names problems, ``--files`` candidates by number. Candidates in CUDA C++
are built by nvcc with the harness's options.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import itertools
import json
import multiprocessing
import os
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CANDIDATES = HERE.parent / "candidates"
PROBLEMS = HERE.parents[2] / "campaigns" / "problems"
COPY_BYTES_PER_S, BF16_FLOP_PER_S = 4.3e12, 780e12
"""Measured on an H200 (docs/results/harness-h200.md): a large copy, read and written bytes; a large bf16 product."""
L2_BYTES = 60 << 20
DEVICE = "cuda"
NVCC_FLAGS = ["-std=c++20", "-O3", "--shared", "-Xcompiler", "-fPIC", "-gencode=arch=compute_90a,code=sm_90a"]
"""What the harness gives nvcc (campaigns/harness/backends/cuda.py)."""
LARGEST_CHECK_BYTES = 8 << 30
_TUNABLE = re.compile(r"^(?P<name>[A-Z_]+) = (?P<value>\S+)  # tunable: (?P<choices>.+)$", re.MULTILINE)

sys.path.insert(0, str(HERE))
from grids import GRIDS  # noqa: E402


def problem_of(name: str) -> dict[str, Any]:
    return tomllib.loads((PROBLEMS / name / "problem.toml").read_text())


def workloads(problem: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {w["name"]: w for w in problem["workloads"] if w["device"] == "cuda"}


def shape(entries: list[Any], axes: dict[str, int]) -> list[int]:
    return [e if isinstance(e, int) else int(eval(e, {"min": min, "max": max}, dict(axes))) for e in entries]


def floor_us(problem: dict[str, Any], workload: dict[str, Any]) -> float:
    scope = {"min": min, "max": max, "itemsize": 2}
    moved, done = (eval(problem["floor"][k], scope, dict(workload["axes"])) for k in ("bytes", "flop"))
    return float(max(moved / COPY_BYTES_PER_S, done / BF16_FLOP_PER_S) * 1e6)


def module(path: Path, name: str) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def with_values(source: Path, values: dict[str, Any]) -> str:
    text = source.read_text()
    for name, value in values.items():
        text, count = re.subn(
            rf"(?m)^((?:constexpr int )?{name} = )[^\s;]+(;?  (?:#|//) tunable:)", rf"\g<1>{value}\g<2>", text
        )
        if count != 1:
            raise ValueError(f"{source.name} declares no {name}")
    return text


def variant(source: Path, values: dict[str, Any], folder: Path) -> Path:
    """A file of the candidate with these values in its declared parameters; of CUDA C++ the shared object."""
    text = with_values(source, values)
    label = "_".join(f"{k}{v}" for k, v in values.items()) or "as_it_is"
    path = folder / f"{source.parent.name}_{source.stem.replace('-', '_')}_{label}{source.suffix}"
    temporary = path.with_name(f"{os.getpid()}_{path.name}")
    temporary.write_text(text)
    if source.suffix != ".cu":
        temporary.rename(path)
        return path
    built = path.with_suffix(".so")
    if not built.exists():
        found = subprocess.run(
            ["nvcc", *NVCC_FLAGS, "-o", str(temporary.with_suffix(".so")), str(temporary)],
            capture_output=True,
            text=True,
        )
        if found.returncode:
            raise RuntimeError(found.stderr.strip() or f"nvcc ended with {found.returncode}")
        temporary.with_suffix(".so").rename(built)
    return built


def runner(path: Path, axes: dict[str, int]) -> Callable[..., None]:
    """The entry point of a variant, on tensors."""
    if path.suffix == ".py":
        run: Callable[..., None] = module(path, "candidate_kernel").run
        return run
    import torch

    entry = ctypes.CDLL(str(path)).run
    lengths = [ctypes.c_int64(length) for length in axes.values()]

    def call(*tensors: Any) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        entry(*(ctypes.c_void_p(t.data_ptr()) for t in tensors), *lengths, stream)

    return call


Point = tuple[str, str, tuple[tuple[str, Any], ...], str]
"""Problem, file of the candidate, its changed values, workload."""


def points(only: list[str], files: list[str]) -> list[Point]:
    """Every point of the grids and a check of each candidate as it is on every workload that fits; the problems in turn, so
    that each gets a share of a short run, and each problem's checks after half of its points."""
    rows: list[list[Point]] = []
    for problem, candidates in GRIDS.items():
        if only and problem not in only:
            continue
        row: list[Point] = []
        for file, grids in candidates.items():
            if files and file[:2] not in files:
                continue
            for names, grid in grids:
                for values in itertools.product(*grid.values()):
                    row.extend((problem, file, tuple(zip(grid, values, strict=True)), name) for name in names)
        half = len(row) // 2
        rows.append([*row[:half], *checks(problem, files), *row[half:]])
    return [point for group in itertools.zip_longest(*rows) for point in group if point is not None]


def checks(problem: str, files: list[str]) -> Iterator[Point]:
    for file in GRIDS[problem]:
        if files and file[:2] not in files:
            continue
        for name, workload in workloads(problem_of(problem)).items():
            if size_bytes(problem, workload) <= LARGEST_CHECK_BYTES:
                yield problem, file, (), name


def size_bytes(problem: str, workload: dict[str, Any]) -> int:
    found = 0
    spec = problem_of(problem)
    for tensor in (*spec["inputs"], *spec["outputs"]):
        count = 1
        for length in shape(tensor["shape"], workload["axes"]):
            count *= length
        found += count * (2 if tensor["dtype"] == "dtype" else 8 if tensor["dtype"] == "int64" else 4)
    return found


# --- compiling, without a GPU -----------------------------------------------------------------------------------------


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


# --- measuring --------------------------------------------------------------------------------------------------------


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


def scout(
    out: Path, work: Path, only: list[str], files: list[str], deadline: float, workers: int, baselines: bool
) -> None:
    folder = work / "variants"
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    todo, compiled, results = context.Queue(), context.Queue(), context.Queue()
    wanted = points(only, files)
    for point in wanted:
        todo.put(point)
    pool = []
    for _ in range(workers):
        todo.put(None)
        pool.append(context.Process(target=compile_worker, args=(todo, compiled, str(folder), deadline), daemon=True))
        pool[-1].start()
    other = None
    if baselines:
        command = [sys.executable, __file__, "--role", "baselines", "--out", str(out), "--work", str(work)]
        command += ["--until", str(deadline - 8), *(a for name in only for a in ("--only", name))]
        other = subprocess.Popen(command, env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2"})
    rows: list[dict[str, Any]] = []
    measuring, begun, tries = None, None, 0
    began = last_write = time.time()
    while len(rows) < len(wanted) and time.time() < deadline - 4:
        if measuring is None or not measuring.is_alive():
            if measuring is not None and begun is not None and results.empty():
                rows.append({**told(begun), "failure": "the measuring process ended"})
                begun = None
            if tries == 6:
                break
            tries += 1
            arguments = (compiled, results, str(work), str(folder))
            measuring = context.Process(target=measure_worker, args=arguments, daemon=True)
            measuring.start()
        try:
            row = results.get(timeout=1)
        except queue.Empty:
            continue
        if "begun" in row:
            begun = row["begun"]
            continue
        begun = None
        rows.append(row)
        if time.time() - last_write > 8:
            last_write = time.time()
            (out / "tune.json").write_text(json.dumps(rows))
            print(f"{time.time() - began:5.0f} s  {len(rows)} of {len(wanted)} points", flush=True)
    (out / "tune.json").write_text(json.dumps(rows))
    if other is not None:
        try:
            other.wait(max(0.1, deadline - time.time()))
        except subprocess.TimeoutExpired:
            other.kill()
    for process in [*pool, measuring]:
        if process is not None:
            process.terminate()
    show(out, rows)


def told(point: Point) -> dict[str, Any]:
    problem, file, values, name = point
    return {
        "problem": problem,
        "file": file,
        "values": dict(values),
        "workload": name,
        "kernels": [],
        "check": not values,
    }


def show(out: Path, rows: list[dict[str, Any]]) -> None:
    path = out / "baselines.json"
    base = json.loads(path.read_text()) if path.exists() else []
    print(
        f"\n{'problem, workload':<44} {'best':>8} {'floor':>7} {'÷':>5} {'compile':>8} {'eager':>8} {'gain':>5}  with"
    )
    for problem in dict.fromkeys(row["problem"] for row in rows):
        for name, workload in workloads(problem_of(problem)).items():
            mine = [r for r in rows if r["problem"] == problem and r["workload"] == name and "us" in r]
            right = sorted((r for r in mine if r["error"] <= 1), key=lambda r: r["us"])
            if not right:
                continue
            least = floor_us(problem_of(problem), workload)
            known = {
                b["baseline"]: b["us"] for b in base if (b["problem"], b["workload"]) == (problem, name) and "us" in b
            }
            gain = f"{min(known.values()) / right[0]['us']:.2f}" if known else "–"
            compiled, eager = (f"{known[k]:.1f}" if k in known else "–" for k in ("compile", "eager"))
            for place, row in enumerate(right[:3]):
                values = " ".join(f"{k}={v}" for k, v in row["values"].items())
                ahead = f"{problem} {name}" if place == 0 else ""
                rest = f"{compiled:>8} {eager:>8} {gain:>5}" if place == 0 else " " * 23
                print(
                    f"{ahead:<44} {row['us']:>8.2f} {least:>7.1f} {row['us'] / least:>5.2f} {rest}"
                    f"  {row['file'][:2]} {values}"
                )
    wrong = [r for r in rows if r.get("error", 0) > 1]
    for row in wrong[:12]:
        print(
            "WRONG", row["problem"], row["file"], row["workload"], row["values"], f"{row['error']:.2f} of the tolerance"
        )
    failures: dict[str, int] = {}
    for row in rows:
        if "failure" in row:
            key = f"{row['problem']} {row['file'][:2]} {row['workload']}: {row['failure'][:150]}"
            failures[key] = failures.get(key, 0) + 1
    for key, count in sorted(failures.items(), key=lambda item: -item[1])[:16]:
        print(f"FAILED {count}×", key)
    checked = {(r["problem"], r["file"], r["workload"]) for r in rows if r["check"] and r.get("error", 9) <= 1}
    print(f"{len(checked)} checks of candidates as they are were right; {len(rows)} points in all")


def apply(rows: list[dict[str, Any]]) -> None:
    """Write into each candidate what was fastest and right: for each group of workloads of its grids the point with the
    least geometric mean, measured on all of them."""
    for problem, candidates in GRIDS.items():
        for file, grids in candidates.items():
            source = CANDIDATES / problem / file
            for group in dict.fromkeys(tuple(names) for names, _ in grids):
                times: dict[tuple[tuple[str, Any], ...], list[float]] = {}
                for row in rows:
                    here = (row["problem"], row["file"]) == (problem, file) and row["workload"] in group
                    if here and row["values"] and "us" in row and row["error"] <= 1:
                        times.setdefault(tuple(row["values"].items()), []).append(row["us"])
                whole = {values: us for values, us in times.items() if len(us) == len(group)}
                if not whole:
                    continue
                best = min(whole, key=lambda values: statistics.geometric_mean(whole[values]))
                source.write_text(with_values(source, dict(best)))
                print(f"{problem} {file[:2]} {', '.join(group)}: {dict(best)}", flush=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "tune-out"))
    parser.add_argument("--work", type=Path, help="for variants and locks; a temporary folder when left out")
    parser.add_argument("--only", action="append", default=[], metavar="PROBLEM[,PROBLEM]")
    parser.add_argument("--files", default="", metavar="01,03", help="candidates by number; all when left out")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 3))
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument(
        "--apply", action="store_true", help="write what was best into the candidates; also with --show"
    )
    parser.add_argument("--show", action="store_true", help="print the tables of a finished run again")
    parser.add_argument("--role", choices=("scout", "baselines"), default="scout")
    parser.add_argument("--until", type=float)
    options = parser.parse_args()
    only = [name for names in options.only for name in names.split(",")]
    files = [number for number in options.files.split(",") if number]
    options.out.mkdir(parents=True, exist_ok=True)
    work = options.work or Path(tempfile.mkdtemp(prefix="tune-"))
    deadline = options.until or time.time() + options.seconds
    if options.show:
        show(options.out, json.loads((options.out / "tune.json").read_text()))
        if options.apply:
            apply(json.loads((options.out / "tune.json").read_text()))
    elif options.compile_only:
        compile_only(work, only, files, options.workers)
    elif options.role == "baselines":
        measure_baselines(options.out, work, only, deadline)
    else:
        try:
            scout(options.out, work, only, files, deadline, options.workers, not options.no_baselines)
        except BaseException:
            traceback.print_exc()
            raise
        if options.apply:
            apply(json.loads((options.out / "tune.json").read_text()))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
