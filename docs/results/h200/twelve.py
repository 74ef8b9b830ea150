"""How long a warm evaluation of a Triton kernel with twelve timed workloads takes on this host's GPU.

    python3 docs/results/h200/twelve.py --times 4 --out OUT

The problem is the bundled rmsnorm with six more timed workloads: twelve timed and three that are only checked. Each
evaluation is of other sizes of the candidate, so that nothing of it is compiled before. The first is cold.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MORE = ((128, 4096), (1024, 4096), (4096, 8192), (512, 7168), (16384, 2048), (2000, 6144))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--candidate", type=Path, default=HERE.parent / "candidates" / "rmsnorm" / "01-one-pass.py")
    parser.add_argument("--baseline", default="compile")
    parser.add_argument(
        "--processes",
        type=int,
        nargs="*",
        default=[],
        help="in how many the workloads are checked, in turn; as usual when left out",
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "twelve-out"))
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from campaigns.harness import cli
    from campaigns.harness.candidate import load_candidate, tunables, with_values
    from campaigns.harness.evaluator import close, evaluate
    from campaigns.harness.problem import load_problem, read_folder
    from campaigns.harness.report import encode
    from campaigns.harness.request import EvaluationRequest
    from campaigns.harness.stages import gpu_correctness

    folder = options.out / "rmsnorm_twelve"
    shutil.copytree(ROOT / "campaigns" / "problems" / "rmsnorm", folder, dirs_exist_ok=True)
    with (folder / "problem.toml").open("a") as text:
        for rows, hidden in MORE:
            text.write(f'\n[[workloads]]\nname = "r{rows}_h{hidden}"\naxes = {{ rows = {rows}, hidden = {hidden} }}\n')
            text.write('device = "cuda"\ndtype = "bfloat16"\n')
    files = read_folder(folder)
    problem = load_problem(files)
    first = load_candidate(options.candidate)
    began = time.monotonic()
    try:
        for number in range(options.times):
            declared = tunables(first)
            values = {t.name: t.choices[number % len(t.choices)] for t in declared}
            request = EvaluationRequest(
                problem_name=problem.name, problem_files=files, candidate=with_values(first, values), incumbent=first,
                baseline=options.baseline, mode="full",
            )  # fmt: skip
            if options.processes:
                gpu_correctness.PROCESSES = options.processes[number % len(options.processes)]
            found = evaluate(request, progress=lambda stage, detail: None)
            stages = ", ".join(f"{s.name} {s.seconds:.1f}" for s in found.stages if s.seconds >= 0.05)
            print(f"{time.monotonic() - began:6.1f} s  {found.outcome} in {found.seconds:.1f} s: {stages}", flush=True)
            checked = next((s.evidence for s in found.stages if s.name == "correctness"), {})
            print(f"          {checked.get('processes')} processes; {checked.get('seconds')}", flush=True)
            if number == 0:
                print(cli.text(found), flush=True)
            (options.out / f"report-{number}.json").write_bytes(encode(found))
    finally:
        close()


if __name__ == "__main__":
    main()
