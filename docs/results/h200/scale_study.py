"""How much the timing is worth on this host: a kernel against itself at three sizes, and gains of 1 % and 3 % found again.

    python3 docs/results/h200/scale_study.py --seconds 560 --out OUT [--pairs us5=300 us10=300 us70=300] [--gains us70=100]

The size of each gain is first measured apart from the harness, by CUDA events around graphs of both kernels in turn. Where
there are several GPUs the parts are shared out among two of them. Every comparison made is in ``OUT/NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROBLEM = ROOT / "tests" / "harness" / "gpu" / "data" / "scale"
KERNEL = PROBLEM / "start" / "triton_kernel.py"
ROWS = {"us5": 2048, "us10": 4096, "us70": 32768}
WIDTH = 2048
WANTED = {"us5": (0.03, (8, 10, 11, 12, 14)), "us70": (0.01, (0.8, 0.9, 1.0, 1.1))}
"""Of a workload the gain that is to be found, and the handicaps of the incumbent, in percent of its rows, to choose from."""


PAIR_S = {"us5": 1.3, "us10": 1.9, "us70": 2.1}
"""Roughly what a comparison takes; a gain is looked at for longer."""


@dataclass(frozen=True)
class Part:
    name: str
    workload: str
    pairs: int
    incumbent: Path | None = None

    @property
    def arguments(self) -> list[str]:
        found = ["--workload", self.workload, "--pairs", str(self.pairs)]
        return [*found, "--candidate", str(KERNEL), "--incumbent", str(self.incumbent)] if self.incumbent else found

    @property
    def about_s(self) -> float:
        return self.pairs * PAIR_S[self.workload] * (1.2 if self.incumbent else 1)


def with_handicap(percent: float, folder: Path) -> Path:
    path = folder / f"handicap_{str(percent).replace('.', '_')}.py"
    path.write_text(re.sub(r"(?m)^EXTRA = .*$", f"EXTRA = {percent}", KERNEL.read_text()))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "study-out"))
    parser.add_argument("--pairs", nargs="*", default=[f"{name}=300" for name in ROWS], help="of a kernel with itself")
    parser.add_argument("--gains", nargs="*", default=[f"{name}=100" for name in WANTED])
    parser.add_argument("--calibrate", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.calibrate:
        print(json.dumps(calibrated(options.calibrate)))
        return
    ends = time.monotonic() + options.seconds
    work = options.out / "kernels"
    work.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--calibrate", str(work), "--out", str(options.out)]
    chosen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    (options.out / "handicaps.json").write_text(json.dumps(chosen, indent=1))
    for workload, (percent, gain, all_of_them) in chosen.items():
        print(f"{workload}: {percent} % more rows cost {gain:.2%} by events; all: {all_of_them}", flush=True)

    wanted = [Part(f"aa_{name}", name, int(count)) for name, _, count in (one.partition("=") for one in options.pairs)]
    for name, _, count in (one.partition("=") for one in options.gains):
        incumbent = with_handicap(chosen[name][0], work)
        wanted += [Part(f"gain_{name}_{half}", name, int(count) // 2, incumbent) for half in "ab"]
    queues: list[list[Part]] = [[] for _ in range(min(2, gpus()))]
    for part in sorted(wanted, key=lambda part: -part.about_s):
        min(queues, key=lambda queue: sum(p.about_s for p in queue)).append(part)
    for queue in queues:
        queue.sort(key=lambda part: part.incumbent is None)  # gains first: they are the fewest
    threads = [threading.Thread(target=run_all, args=(at, queue, ends, options.out)) for at, queue in enumerate(queues)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def gpus() -> int:
    sys.path.insert(0, str(ROOT))
    from campaigns.harness.gpu.devices import visible

    return len(visible())


def run_all(gpu: int, queue: list[Part], ends: float, out: Path) -> None:
    for at, part in enumerate(queue):
        left = ends - time.monotonic()
        seconds = (left - 12 * (len(queue) - at)) * part.about_s / sum(p.about_s for p in queue[at:])
        command = [sys.executable, "-m", "campaigns.harness.cli", "aa", str(PROBLEM), *part.arguments]
        command += ["--limit", f"{seconds:.0f}", "--json", str(out / f"{part.name}.json")]
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        (out / f"{part.name}.log").write_text(done.stdout)
        said = done.stdout.strip().splitlines()
        print(f"\n{part.name}: status {done.returncode}\n" + "\n".join(said[-5:]), flush=True)


def calibrated(folder: Path) -> dict[str, Any]:
    """By workload: the handicap whose cost is nearest to the gain wanted, that cost, and the cost of each."""
    import torch

    def run_of(percent: float) -> Any:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location(f"kernel_{percent}".replace(".", "_"), with_handicap(percent, folder))
        assert spec is not None
        assert spec.loader is not None
        loaded = module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded.run

    found: dict[str, Any] = {}
    for workload, (wanted, percents) in WANTED.items():
        rows = ROWS[workload]
        slots = [
            (
                torch.randn(rows, WIDTH, device="cuda", dtype=torch.bfloat16),
                torch.randn(rows, device="cuda", dtype=torch.bfloat16),
                torch.empty(rows, WIDTH, device="cuda", dtype=torch.bfloat16),
            )
            for _ in range(max(4, (160 << 20) // (rows * WIDTH * 4)))
        ]
        calls = max(8, (4_000 if workload == "us5" else 8_000) // {"us5": 5, "us70": 65}[workload])
        graphs = {}
        for percent in (0.0, *percents):
            run = run_of(percent)
            run(*slots[0])
            torch.cuda.synchronize()
            graphs[percent] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graphs[percent]):
                for i in range(calls):
                    run(*slots[i % len(slots)])
            graphs[percent].replay()
        times: dict[float, list[float]] = {percent: [] for percent in graphs}
        for _ in range(40):
            for percent, graph in graphs.items():
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                graph.replay()
                end.record()
                end.synchronize()
                times[percent].append(begin.elapsed_time(end))
        cost = {p: statistics.median(t / o for t, o in zip(times[p], times[0.0], strict=True)) - 1 for p in percents}
        best = min(cost, key=lambda percent: abs(cost[percent] - wanted))
        found[workload] = (best, cost[best], {str(p): round(c, 5) for p, c in cost.items()})
    return found


if __name__ == "__main__":
    main()
