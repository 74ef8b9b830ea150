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
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from scouting.compiling import compile_only, compile_worker
from scouting.measuring import measure_baselines, measure_worker
from scouting.points import points, told
from scouting.table import apply, show


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
